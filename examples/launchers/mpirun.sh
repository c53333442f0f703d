#!/bin/sh
# Measures between the hosts of a host file, one rank a slot: mpirun.sh HOSTFILE RANKS [OPTION...]
set -eu
hosts=$1 ranks=$2
shift 2
exec "${MPIEXEC:-mpiexec}" -hostfile "$hosts" -n "$ranks" \
    "${LINKGAUGE:-linkgauge}" run --prefix multinode_device_to_device_memcpy --label nodes "$@"

#!/bin/sh
# Slurm's Prolog (slurm.conf: Prolog=/etc/slurm/prolog.sh): a node that is not healthy is drained, and
# its job goes to another one. Slurm sets no PATH here.
PATH=/usr/bin:/bin
export LINKGAUGE_HISTORY=none
# shellcheck disable=SC2086  # several options
line=$("${LINKGAUGE:-/opt/linkgauge/bin/linkgauge}" check --under 60s ${CHECK_OPTIONS:-} 2>&1)
code=$?
echo "$line"
logger -t linkgauge "$line" 2>/dev/null || true
exit "$code"

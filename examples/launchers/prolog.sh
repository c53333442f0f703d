#!/bin/sh
# Slurm's Prolog (slurm.conf: Prolog=/etc/slurm/prolog.sh): a node that is not healthy is drained, and
# its job goes to another one. What was measured is kept for epilog.sh. Slurm sets no PATH here.
PATH=/usr/bin:/bin
export LINKGAUGE_HISTORY=none
before=${LINKGAUGE_JOBS:-/var/lib/linkgauge/jobs}/${SLURM_JOB_ID:-none}
out=
mkdir -p "$before" 2>/dev/null && [ -w "$before" ] && out="--out $before --label prolog"
# shellcheck disable=SC2086  # several options
line=$("${LINKGAUGE:-/opt/linkgauge/bin/linkgauge}" check --under 60s $out ${CHECK_OPTIONS:-} 2>&1)
code=$?
echo "$line"
logger -t linkgauge "$line" 2>/dev/null || true
exit "$code"

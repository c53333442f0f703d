#!/bin/sh
# Slurm's Epilog (slurm.conf: Epilog=/etc/slurm/epilog.sh): a node that the job left slower than prolog.sh
# measured it before, or that is not healthy, is drained. Takes the same CHECK_OPTIONS as prolog.sh.
PATH=/usr/bin:/bin
export LINKGAUGE_HISTORY=none
before=${LINKGAUGE_JOBS:-/var/lib/linkgauge/jobs}/${SLURM_JOB_ID:-none}
against=
[ -n "$(find "$before" -name journal.jsonl 2>/dev/null)" ] && against="--baseline $before"
# shellcheck disable=SC2086  # several options
line=$("${LINKGAUGE:-/opt/linkgauge/bin/linkgauge}" check --under 60s $against ${CHECK_OPTIONS:-} 2>&1)
code=$?
echo "$line"
logger -t linkgauge "$line" 2>/dev/null || true
rm -rf "$before"
exit "$code"

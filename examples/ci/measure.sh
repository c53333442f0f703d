#!/bin/sh
# What CI does on a node of the lab; a person who is on the node calls the same:
#
#   ci/measure.sh NODE [OPTION…]        such as: ci/measure.sh gpu07
#                      and without the hardware: ci/measure.sh gpu07 --machine dgx-h200-8
#
# The results are in results/, run.json and gate.xml. The exit code is linkgauge's: the first of 2 (the
# inputs or the node are not those that were reviewed), 3 (an error cost results), 1 (slow, or a limit is
# missed), 4 (nothing was measured) that any step has.
set -eu

linkgauge=${LINKGAUGE:-linkgauge}
python=${PYTHON:-python3}
here=$(cd "$(dirname "$0")" && pwd)
[ $# -gt 0 ] || { echo "usage: $0 NODE [OPTION…]" >&2; exit 2; }
node=$1
shift
hardware=$here/lab/$node.yml
baseline=$here/baselines/$node.json
[ -f "$hardware" ] || { echo "no $hardware: write it with 'linkgauge devices --yaml'" >&2; exit 2; }

worst=0
# Keeps the first of 2, 3, 1, 4 that any step ends with; what stops a step stops everything.
step() {
    echo "== $*" >&2
    code=0
    "$@" || code=$?
    [ "$code" -lt 128 ] || exit "$code"
    case $worst,$code in *,0 | 2,* | 3,[14] | 1,4) ;; *) worst=$code ;; esac
}

# Pinned inputs: limits, baselines and descriptions are those that were reviewed, or nothing runs.
(cd "$here" && sha256sum --check --quiet --strict inputs.sha256) || exit 2

# A new driver or firmware explains what follows: it is to be seen, reviewed and written down first.
case " $* " in
*" --machine "*) ;;
*)
    "$linkgauge" devices --yaml >found.yml
    "$python" "$here/lab.py" check "$hardware" found.yml >&2 || exit 2
    step "$linkgauge" doctor
    ;;
esac

rm -f run.json gate.xml
step "$linkgauge" run --profile quick --hardware "$hardware" --limits "$here/throughput.yml" \
    --label "$node" --json "$@" >run.json
step "$linkgauge" run latency_copy_pingpong --size 64 --limits "$here/latency.yml" \
    --label "$node-latency" "$@" >&2
if [ -f "$baseline" ] && [ -s run.json ]; then
    step "$linkgauge" gate --baseline "$baseline" --current run.json \
        --limits "$here/throughput.yml" --junit -o gate.xml ${GITHUB_ACTIONS:+--github}
else
    echo "no $baseline: limits alone decide; 'linkgauge baseline results/…/$node -o $baseline'" \
        "makes one of five runs or more" >&2
fi
exit "$worst"

#!/bin/sh
# Onboards a machine: captures it, asks the doctor, measures latency, bandwidth and a collective,
# writes a report and packs everything into one archive.
#
#   examples/onboard.sh [-o DIR] [-p PROFILE] [-- OPTION…]
#
#   -o DIR      keep everything there (onboarding/HOST-TIME); the archive is DIR.tgz
#   -p PROFILE  measure bandwidth with this profile (quick): quick, standard or full
#   OPTION…     for everything that measures, such as: -- --device cuda:0
#                                       and to try it: -- --machine riscv-2gpu   (SIMULATED)
#
# What a machine does not have, such as a GPU, is skipped with the reason. The exit code is
# linkgauge's: 0 all is well, 1 the machine is not as it should be, 3 something could not be done.
set -eu

linkgauge=${LINKGAUGE:-linkgauge}
profile=quick
out=

usage() { sed -n '2,/^set -eu/{/^#/s/^# \{0,1\}//p;}' "$0"; }
fail() { echo "onboard: $*" >&2; exit 2; }

while [ $# -gt 0 ]; do
    case $1 in
    -h | --help) usage; exit 0 ;;
    -o) [ $# -gt 1 ] || fail "-o takes a folder"; out=$2; shift 2 ;;
    -p) [ $# -gt 1 ] || fail "-p takes a profile"; profile=$2; shift 2 ;;
    --) shift; break ;;
    *) fail "unknown option $1: see $0 --help" ;;
    esac
done
command -v "$linkgauge" >/dev/null || fail "no $linkgauge: put it on the PATH, or set LINKGAUGE"

# A described machine has no files to capture, and the doctor is to judge that one.
machine=
option=
for word in "$@"; do
    [ "$option" != --machine ] || machine=$word
    case $word in --machine=*) machine=${word#--machine=} ;; esac
    option=$word
done

out=${out:-onboarding/$(uname -n)-$(date -u +%Y%m%dT%H%M%SZ)}
[ ! -e "$out" ] || fail "$out exists: name another folder with -o"
[ ! -e "$out.tgz" ] || fail "$out.tgz exists: name another folder with -o"
mkdir -p "$out/logs"

failed=0 broken=0
# step NAME FILE COMMAND…: stdout to FILE, stderr to logs/NAME.log; one line says how it went.
step() {
    name=$1 file=$2
    shift 2
    code=0 began=$(date +%s)
    printf '%-12s ' "$name"
    "$@" >"$out/$file" 2>"$out/logs/$name.log" </dev/null || code=$?
    took="$(($(date +%s) - began)) s"
    case $code in 4) word=skip ;; *) word=verdict: ;; esac
    why=$(sed -n "s/^$word *//p" "$out/logs/$name.log" | tail -n 1)
    why=${why:-$(grep -v '^[[:space:]]*$' "$out/logs/$name.log" | tail -n 1 || true)}
    [ -s "$out/$file" ] || rm -f "$out/$file"
    case $code in
    0) echo "ok ($took)" ;;
    1) failed=1; echo "FAILED ($took): $why" ;;
    4) echo "skip: ${why:-nothing was measured}" ;;
    129 | 130 | 143) echo "stopped; what was measured is in $out"; exit "$code" ;;
    *) broken=1; echo "ERROR $code ($took): $why (more in $out/logs/$name.log)" ;;
    esac
}
skip() { printf '%-12s skip: %s\n' "$1" "$2"; }

echo "onboarding ${machine:-$(uname -n)} into $out${machine:+ (SIMULATED)}"
if [ -n "$machine" ]; then
    skip capture "SIMULATED: there is no machine to capture"
else
    step capture logs/capture.txt "$linkgauge" capture "$out/machine.tgz"
fi
step devices hardware.yml "$linkgauge" devices --yaml ${machine:+--machine "$machine"}
step doctor doctor.txt "$linkgauge" doctor ${machine:+--machine "$machine"}
step latency latency.csv "$linkgauge" latency latency_copy_pingpong --size 64 --iterations 10000 \
    --label latency --out "$out/results" --csv "$@"
step bandwidth bandwidth.json "$linkgauge" run --profile "$profile" \
    --label bandwidth --out "$out/results" --json "$@"
step collectives collectives.csv "$linkgauge" scale all_reduce --size 8:256M:x32 \
    --label collectives --out "$out/results" --csv "$@"
if [ -d "$out/results" ]; then
    step report logs/report.txt "$linkgauge" report "$out/results" -o "$out/report.html"
else
    skip report "nothing was measured"
fi

tar -czf "$out.tgz" -C "$(dirname "$out")" "$(basename "$out")"
echo "archive      $out.tgz"
[ "$broken" = 0 ] || exit 3
exit "$failed"

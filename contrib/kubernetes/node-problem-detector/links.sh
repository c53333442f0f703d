#!/bin/sh
# A plug-in of Node Problem Detector. Ends with 0 where `linkgauge doctor` finds no fault of this node, with 1
# where it does (its output names the faults), and with 2 where that is not known. Measures nothing, so
# that it disturbs no job. Options of the doctor may follow.
linkgauge=${LINKGAUGE:-linkgauge}
export LINKGAUGE_HISTORY=none
found=$("$linkgauge" doctor "$@" 2>&1)
code=$?
faults=$(printf '%s\n' "$found" | sed -n 's/^fail  *//p')
case $code in
    0) echo "linkgauge doctor finds no fault" ;;
    1) echo "${faults:-linkgauge doctor finds a fault}" ;;
    *) printf '%s\n' "$found" | tail -n 1; code=2 ;;
esac
exit "$code"

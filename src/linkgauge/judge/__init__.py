"""Judges figures. `expected/` computes the figures that the hardware should reach, and `verdict`
decides whether cells reach them. `blame/` finds the part at fault. `doctor/` holds checks, each a
function. `compare/` tests whether runs differ. `outcome` gives the verdict on a run, and its exit
code."""

"""Judges figures. `expected/` computes what the hardware should reach, and `verdict` decides
whether cells reach it. `blame/` finds the part at fault. `doctor/` has the doctor's checks.
`compare/` tests whether runs differ. `outcome` gives the verdict on a run, and its exit code."""

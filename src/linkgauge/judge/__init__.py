"""The judging of figures. `expected/`: the figures that the hardware should reach. `verdict`:
whether a figure reaches its expectation. `blame/`: which part is at fault. `doctor/`: checks, each
a function. `compare/`: whether runs differ. `outcome`: the verdict on a run, and its exit code."""

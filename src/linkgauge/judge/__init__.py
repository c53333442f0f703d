"""What numbers mean. `expected/`: what the hardware should do. `verdict`: whether a figure is
that. `blame/`: which part is at fault. `doctor/`: checks, each a function. `compare/`: whether
runs differ. `outcome`: what a run comes to, and its exit code.
"""

"""The documents that linkgauge writes, such as runs, comparisons of settings and histories."""

"""The documents that linkgauge writes: runs, soaks, comparisons and histories."""

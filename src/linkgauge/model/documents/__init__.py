"""Documents that linkgauge writes: runs, soaks, comparisons, histories."""

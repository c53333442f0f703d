"""The data types of linkgauge, without I/O, and the statistics of samples and runs."""

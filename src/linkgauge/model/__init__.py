"""Data types of linkgauge, without I/O. `documents/` are written to files; `stats/` has
statistics."""

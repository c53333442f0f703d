"""The Python API (docs/api.md). Most functions do the same as a command, which they name."""

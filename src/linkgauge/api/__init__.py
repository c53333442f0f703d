"""The Python API (docs/api.md). Each function does what the command of the same name does."""

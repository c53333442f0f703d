"""The Python API (docs/api.md). A call does what the command of its name does."""

"""The Python API, which the package `linkgauge` exports (docs/api.md).

A call carries out what the command of its name does, with the command's own options and functions
(`calling.py`), and returns the value that the command would show."""

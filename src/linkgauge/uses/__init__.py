"""The use cases of commands and of the Python API, as functions of values. None reads options."""

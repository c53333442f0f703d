"""Functions that the commands and the Python API share. They do not parse the command line."""

"""What commands, the Python API and rooms do with values. Nothing here reads a command line."""

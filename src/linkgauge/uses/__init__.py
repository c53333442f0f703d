"""What commands, the Python API and rooms do with values. Nothing here knows a command line."""

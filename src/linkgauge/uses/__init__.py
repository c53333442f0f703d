"""What commands, the Python API and rooms do with values: measure a request, take the sides of a
comparison, find earlier runs, resume. Nothing here knows a command line."""

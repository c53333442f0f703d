"""A machine as one file."""

"""Captures the files of a machine without secrets and, if asked, without names."""

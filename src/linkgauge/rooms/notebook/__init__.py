"""Runs in Python and as tables."""

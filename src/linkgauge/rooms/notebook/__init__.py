"""Writes kept runs as tables."""

"""Writes stored runs as tables for other programs."""

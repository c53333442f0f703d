"""Saves everything that linkgauge reads of a machine in one file."""

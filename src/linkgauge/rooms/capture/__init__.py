"""Saves in one file everything that linkgauge reads of a machine."""

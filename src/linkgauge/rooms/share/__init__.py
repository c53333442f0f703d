"""Writes a kept run for other people: as a packed file, or as a small page without names."""

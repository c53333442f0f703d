"""Prepares a kept run for other people: a packed file, or a small page, also without names."""

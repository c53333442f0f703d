"""Prepares a kept run for other people: a packed file or a small page, if wanted without names."""

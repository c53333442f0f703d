"""Prepares a kept run for other people: as one packed file, or as one small page. Both can leave
out names."""

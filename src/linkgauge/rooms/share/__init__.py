"""Writes a stored run for other people, as an archive or as a small page without names."""

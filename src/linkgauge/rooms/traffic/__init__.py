"""Measures how fast host threads and devices use a staging buffer, together and alone."""

"""Measures traffic of host threads and devices in stages: together and alone."""

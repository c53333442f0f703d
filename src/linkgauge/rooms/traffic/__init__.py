"""Host threads and devices that move data at once, in stages."""

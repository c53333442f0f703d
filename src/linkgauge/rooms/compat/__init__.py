"""Offers linkgauge's measurements with the command lines and output of other tools. Each tool has a
file, or a folder of its name."""

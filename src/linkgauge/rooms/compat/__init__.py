"""Offers linkgauge's measurements with the command lines and output of other tools."""

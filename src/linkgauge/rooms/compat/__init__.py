"""Runs other tools' command lines with linkgauge's measurements, and prints in their formats."""

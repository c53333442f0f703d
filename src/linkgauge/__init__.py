"""linkgauge measures how fast data moves between every pair of memories a machine can reach."""

__version__ = "0.1.0"

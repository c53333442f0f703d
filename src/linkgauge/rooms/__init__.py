"""Features upon the core, a folder each, which can be read alone: a room imports the core's public
names, and never another room's. Its `ROOM` lists its additions."""

from linkgauge.registry import Room

__all__ = ["Room"]

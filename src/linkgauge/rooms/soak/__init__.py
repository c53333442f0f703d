"""Reports on runs that repeat their benchmarks for hours."""

from linkgauge.registry import Room

ROOM = Room("soak", sections=(f"{__name__}.section:SECTION",))

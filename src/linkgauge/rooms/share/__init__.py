"""Prepares a kept run for other people: as one packed file, or as one small page. Both can leave
out names."""

from linkgauge.registry import Room

ROOM = Room(
    "share",
    commands={"pack": f"{__name__}.command:pack", "share": f"{__name__}.command:share"},
)

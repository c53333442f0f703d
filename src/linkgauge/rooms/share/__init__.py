"""A kept run for other people: packed into one file, or as one small page, also without names."""

from linkgauge.registry import Room

ROOM = Room(
    "share",
    commands={"pack": f"{__name__}.command:pack", "share": f"{__name__}.command:share"},
)

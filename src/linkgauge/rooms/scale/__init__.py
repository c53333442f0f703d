"""Measures a collective over more and more devices, and finds where it stops scaling."""

from linkgauge.registry import Room

ROOM = Room(
    "scale",
    commands={"scale": f"{__name__}.command:scale"},
    sections=(f"{__name__}.sections:SECTION",),
    kept={"scale.json": f"{__name__}.command:SCALING"},
)

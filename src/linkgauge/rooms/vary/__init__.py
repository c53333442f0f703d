"""Measures the same benchmarks under several settings, in rounds, and compares them."""

from linkgauge.registry import Room

ROOM = Room(
    "vary",
    commands={"vary": f"{__name__}.command:vary"},
    kept={"vary.json": f"{__name__}.command:VARIATION"},
)

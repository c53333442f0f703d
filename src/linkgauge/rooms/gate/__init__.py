"""Compares runs. Shows differences, makes a baseline of several runs, and fails if figures got
worse (the gate)."""

from linkgauge.registry import Room

ROOM = Room(
    "gate",
    commands={
        "compare": f"{__name__}.command:compare",
        "baseline": f"{__name__}.command:baseline",
        "gate": f"{__name__}.command:gate",
    },
)

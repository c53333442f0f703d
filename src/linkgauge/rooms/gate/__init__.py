"""Runs held against each other: compared, made into a baseline, and refused if they have lost."""

from linkgauge.registry import Room

ROOM = Room(
    "gate",
    commands={
        "compare": f"{__name__}.compare:compare",
        "baseline": f"{__name__}.baseline:baseline",
        "gate": f"{__name__}.command:gate",
    },
)

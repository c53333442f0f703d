"""Comparisons of runs: the differences, a baseline of several runs, and a gate that fails after a
loss."""

from linkgauge.registry import Room

ROOM = Room(
    "gate",
    commands={
        "compare": f"{__name__}.compare:compare",
        "baseline": f"{__name__}.baseline:baseline",
        "gate": f"{__name__}.command:gate",
    },
)

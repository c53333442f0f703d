"""Measures traffic of host threads and devices in stages: together and alone."""

from linkgauge.registry import Room

ROOM = Room(
    "traffic",
    commands={"traffic": f"{__name__}.command:traffic"},
    tools={"gc-hosttraffictest": f"{__name__}.gc_hosttraffictest:run"},
)

"""Describes a machine from a run, and simulates the machine of a kept run (`--machine RUN`)."""

from linkgauge.registry import Room

ROOM = Room(
    "describe",
    commands={"describe": f"{__name__}.command:describe_run"},
    machines={"runs": f"{__name__}.runs:given"},
)

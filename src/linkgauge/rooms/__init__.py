"""Features upon the core, a folder each, which can be read alone. A room imports the core's public
names, and never another room's insides; the core imports no room. Another package offers a room of
its own by an entry point of the group `linkgauge.rooms`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

GROUP = "linkgauge.rooms"


class Room(NamedTuple):
    """What a feature adds to linkgauge: its `commands`, each with the `MODULE:FUNCTION` that is
    loaded when it is asked for."""

    name: str
    commands: dict[str, str]


_HERE = "linkgauge.rooms"
ROOMS = (
    Room(
        "gate",
        {
            "compare": f"{_HERE}.gate.compare:compare",
            "baseline": f"{_HERE}.gate.baseline:baseline",
            "gate": f"{_HERE}.gate.command:gate",
        },
    ),
    Room("history", {"history": f"{_HERE}.history.command:history"}),
    Room("vary", {"vary": f"{_HERE}.vary.command:vary"}),
    Room("watch", {"watch": f"{_HERE}.watch.command:watch"}),
    Room("vm", {"vm": f"{_HERE}.vm.command:vm"}),
    Room("exporter", {"exporter": f"{_HERE}.exporter.command:exporter"}),
)


def rooms_of_others(say: Callable[[str], object]) -> Iterator[Room]:
    """Finds the rooms that other installed packages offer, which takes some milliseconds. One that
    cannot be loaded is said, and left out."""
    from importlib.metadata import entry_points

    for point in entry_points(group=GROUP):
        try:
            room = point.load()
        except Exception as error:  # noqa: BLE001 whatever another package's code raises
            say(f"the room {point.name!r} is left out: {type(error).__name__}: {error}")
            continue
        if isinstance(room, Room):
            yield room
        else:
            say(f"the room {point.name!r} is left out: {point.value} is no Room")

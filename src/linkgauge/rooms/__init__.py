"""Features upon the core, a folder each, which can be read alone. A room imports the core's public
names, and never another room's insides; the core imports no room. Another package offers a room of
its own by an entry point of the group `linkgauge.rooms`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from linkgauge.report.formats import Document

GROUP = "linkgauge.rooms"


class Room(NamedTuple):
    """What a feature adds to linkgauge: its `commands`, each with the `MODULE:FUNCTION` of a struct
    of options (`cli/options.py`) that is loaded when it is asked for; the `sections` of a report,
    each a `MODULE:SECTION`; and by the name of a file that it keeps besides runs the document that
    this holds, a `MODULE:DOCUMENT`."""

    name: str
    commands: dict[str, str]
    sections: tuple[str, ...] = ()
    kept: Mapping[str, str] = {}


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
    Room(
        "vary",
        {"vary": f"{_HERE}.vary.command:vary"},
        kept={"vary.json": f"{_HERE}.vary.documents:VARIATION"},
    ),
    Room(
        "scale",
        {"scale": f"{_HERE}.scale.command:scale"},
        (f"{_HERE}.scale.section:SECTION",),
        {"scale.json": f"{_HERE}.scale.documents:SCALING"},
    ),
    Room("watch", {"watch": f"{_HERE}.watch.command:watch"}),
    Room("vm", {"vm": f"{_HERE}.vm.command:vm"}),
    Room("exporter", {"exporter": f"{_HERE}.exporter.command:exporter"}),
)
KEPT = {name: place for room in ROOMS for name, place in room.kept.items()}


def kept_at(path: Path) -> tuple[Document, Any] | None:
    """What a room's command kept in this file, or in this folder, where no run is. Raises
    InputError for what is damaged."""
    from linkgauge.engine.runs import is_run, read_kept
    from linkgauge.report.formats import loaded

    if path.is_dir() and is_run(path):
        return None
    for name, place in KEPT.items():
        document: Document = loaded(place)
        kind, schema = loaded(document.kept), loaded(f"{document.kept.partition(':')[0]}:SCHEMA")
        value = read_kept(path / name if path.is_dir() else path, kind, schema)
        if value is not None:
            return document, value
    return None


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

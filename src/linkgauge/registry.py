"""The registry of features that are added to the core. The core imports none of them. Each folder
of `linkgauge.rooms` has a `Room` record named `ROOM`. Another package offers a room by an entry
point of the group `linkgauge.rooms`. The code that a record names is loaded only when it is
used."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from functools import cache
from importlib import import_module
from operator import attrgetter
from pathlib import Path
from pkgutil import iter_modules
from typing import Any, Literal, NamedTuple

GROUP = "linkgauge.rooms"
"""The package with linkgauge's rooms, and the group of entry points of other packages."""
LEFT_OUT: list[str] = []
"""A line for each room of another package that could not be loaded."""

Named = Literal[
    "commands", "benchmarks", "backends", "ranks", "operations", "tools", "kept", "machines"
]
Listed = Literal["checks", "sections", "formats"]


class Room(NamedTuple):
    """The additions of a feature to linkgauge, each as the `MODULE:NAME` of its code.

    commands: The function of each command, by name. `linkgauge NAME` calls it with one struct of
        options (`linkgauge.cli.options`), and it returns the exit code.
    benchmarks: Rows of `linkgauge.benchmarks.table`, by the heading under which they are listed.
    backends: The function that creates a backend, by name, like `create(engines, host)` of the
        core's backends.
    ranks: The function that creates a rank's backend, by name, like `create` in the core's `rank`
        modules (`linkgauge.backends.open_rank`).
    operations: The code for an operation that a backend leaves to a room, by `BACKEND.OPERATION`.
    checks: Functions of the doctor, from `Evidence` to findings.
    sections: `Section` records of a report.
    formats: `Format` records of documents.
    tools: The function that acts as another tool, by name. It takes the tool's arguments and where
        to measure (`linkgauge.cli.tool`), and returns an exit code.
    kept: The `Document` of each kind of file that is kept in addition to runs, by file name.
    machines: Functions that turn the value of `--machine` into a simulated machine, by source. They
        return its name and YAML, or None for a value that they do not know."""

    name: str
    commands: Mapping[str, str] = {}
    benchmarks: Mapping[str, str] = {}
    backends: Mapping[str, str] = {}
    ranks: Mapping[str, str] = {}
    operations: Mapping[str, str] = {}
    checks: tuple[str, ...] = ()
    sections: tuple[str, ...] = ()
    formats: tuple[str, ...] = ()
    tools: Mapping[str, str] = {}
    kept: Mapping[str, str] = {}
    machines: Mapping[str, str] = {}


def loaded(place: str) -> Any:
    """Loads and returns the object that `MODULE:NAME`, or `MODULE:NAME.ATTRIBUTE`, names."""
    module, _, name = place.partition(":")
    return attrgetter(name)(import_module(module))


def named(kind: Named) -> dict[str, str]:
    """Returns all named additions of a kind, over all rooms. An addition of another package never
    replaces one of linkgauge's own."""
    found: dict[str, str] = {}
    for room in rooms():
        for name, place in getattr(room, kind).items():
            found.setdefault(name, place)
    return found


def operation(name: str) -> Any:
    """Loads and returns the code for a `BACKEND.OPERATION`."""
    return loaded(named("operations")[name])


def listed(kind: Listed) -> tuple[Any, ...]:
    """Loads and returns all listed additions of a kind, over all rooms."""
    return tuple(loaded(place) for room in rooms() for place in getattr(room, kind))


def rooms() -> tuple[Room, ...]:
    """Returns the rooms of linkgauge and of other packages."""
    return *our_rooms(), *_rooms_of_others()


@cache
def our_rooms() -> tuple[Room, ...]:
    """Returns the rooms of linkgauge itself, in the order of their names."""
    folder = import_module(GROUP).__path__
    names = sorted(module.name for module in iter_modules(folder))
    return tuple(import_module(f"{GROUP}.{name}").ROOM for name in names)


@cache
def _rooms_of_others() -> tuple[Room, ...]:
    if not any(map(_names_rooms, sys.path)):
        return ()
    from importlib.metadata import entry_points

    found = []
    for point in entry_points(group=GROUP):
        try:
            room = point.load()
        except Exception as error:  # noqa: BLE001 whatever another package's code raises
            _leave_out(point.name, f"{type(error).__name__}: {error}")
            continue
        if isinstance(room, Room):
            found.append(room)
        else:
            _leave_out(point.name, f"{point.value} is no Room")
    return tuple(found)


def _names_rooms(folder: str) -> bool:
    """Whether a package in this folder offers a room. Python's own look-up would take 20 ms."""
    try:
        files: Iterable[Path] = Path(folder).glob("*-info/entry_points.txt")
        return any(f"[{GROUP}]".encode() in file.read_bytes() for file in files)
    except OSError:
        return False


def _leave_out(name: str, why: str) -> None:
    LEFT_OUT.append(f"the room {name!r} is left out: {why}")

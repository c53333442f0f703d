"""The registry of features that are added to the core, which imports none of them. Each folder of
`linkgauge.rooms` has a `Room` record as its `ROOM`; another package offers one by an entry point of
the group `linkgauge.rooms`. Code that a record names is loaded only when it is used."""

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

    commands: By name, the function that `linkgauge NAME` calls with its options, one struct
        (`linkgauge.cli.options`), and that returns the exit code.
    benchmarks: By the heading that they are listed under, rows of `linkgauge.benchmarks.table`.
    backends: By name, a function like our backends' `create(engines, host)`.
    ranks: By name, the function that makes a rank's backend, like `create` in our `rank` modules
        (`linkgauge.backends.open_rank`).
    operations: By `BACKEND.OPERATION`, the code for an operation that a backend leaves to a room.
    checks: Functions of the doctor, from `Evidence` to findings.
    sections: `Section` records of a report.
    formats: `Format` records of documents.
    tools: By name, the function that acts as another tool, from its arguments and where it
        measures (`linkgauge.cli.tool`) to an exit code.
    kept: By the name of a file that is kept in addition to runs, its `Document`.
    machines: By their source, functions that turn the value of `--machine` into the description of
        a simulated machine: a name and its YAML, or None for values that they do not know.
    """

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
    """The object that `MODULE:NAME`, or `MODULE:NAME.ATTRIBUTE`, names."""
    module, _, name = place.partition(":")
    return attrgetter(name)(import_module(module))


def named(kind: Named) -> dict[str, str]:
    """All named additions of a kind, over all rooms; another package's never replaces ours."""
    found: dict[str, str] = {}
    for room in rooms():
        for name, place in getattr(room, kind).items():
            found.setdefault(name, place)
    return found


def operation(name: str) -> Any:
    """The code for a `BACKEND.OPERATION`."""
    return loaded(named("operations")[name])


def listed(kind: Listed) -> tuple[Any, ...]:
    """All listed additions of a kind, over all rooms, loaded."""
    return tuple(loaded(place) for room in rooms() for place in getattr(room, kind))


def rooms() -> tuple[Room, ...]:
    """The rooms of linkgauge and of other packages."""
    return *our_rooms(), *_rooms_of_others()


@cache
def our_rooms() -> tuple[Room, ...]:
    """The rooms of linkgauge itself, by name."""
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

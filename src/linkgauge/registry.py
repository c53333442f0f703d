"""The registry of features that are added to the core, which imports none of them. Each folder of
`linkgauge.rooms` has a `Room` record as its `ROOM`. Another package, a plug-in, offers a record by
an entry point of the group `linkgauge.rooms`. Code that a record names is loaded only when it is
used."""

from __future__ import annotations

import sys
from collections.abc import Container, Iterable, Iterator, Mapping
from functools import cache
from importlib import import_module
from itertools import takewhile
from operator import attrgetter
from pathlib import Path
from pkgutil import iter_modules
from typing import Any, Literal, NamedTuple

GROUP = "linkgauge.rooms"
"""The package with linkgauge's rooms, and the group of entry points of plug-ins."""
OURS = "linkgauge"
LEFT_OUT: dict[str, None] = {}
"""The lines that say what of plug-ins is left out and why, each once, in order."""

Named = Literal["commands", "backends", "ranks", "operations", "tools", "kept", "machines"]
Listed = Literal["checks", "sections", "formats"]
_WORDS: Mapping[Named, str] = {
    "commands": "command",
    "backends": "backend",
    "ranks": "backend of ranks",
    "operations": "operation",
    "tools": "tool",
    "kept": "kept file",
    "machines": "source of machines",
}


class Room(NamedTuple):
    """The additions of a feature to linkgauge, each as the `MODULE:NAME` of its code.

    name: The name of the feature.
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


class Plugin(NamedTuple):
    """A package that adds a room to linkgauge."""

    package: str
    version: str
    room: Room

    @property
    def origin(self) -> str:
        """The package and its version, as figures and messages name them: `fast-links 1.0`."""
        return f"{self.package} {self.version}"


class RoomBenchmarks(NamedTuple):
    """Rows of `linkgauge.benchmarks.table`, the heading that they are listed under, and the room's
    origin."""

    heading: str
    rows: Iterable[Any]
    origin: str


def loaded(place: str) -> Any:
    """The object that `MODULE:NAME`, or `MODULE:NAME.ATTRIBUTE`, names."""
    module, _, name = place.partition(":")
    return attrgetter(name)(import_module(module))


def named(kind: Named, taken: Container[str] = ()) -> dict[str, str]:
    """The places of all named additions of a kind, over all rooms. A plug-in's addition is left out
    if the core (`taken`), a room of linkgauge or an earlier plug-in has the name."""
    return {name: place for name, (place, _) in _named(kind, taken).items()}


def origin_of(kind: Named, name: str) -> str | None:
    """The plug-in that offers the addition of this name; None if linkgauge itself does, or
    nobody."""
    _, origin = _named(kind).get(name, ("", OURS))
    return None if origin == OURS else origin


def _named(kind: Named, taken: Container[str] = ()) -> dict[str, tuple[str, str]]:
    """The place and the origin of all named additions of a kind."""
    found: dict[str, tuple[str, str]] = {}
    for room, origin in _with_origins():
        for name, place in getattr(room, kind).items():
            if origin != OURS and (name in taken or name in found):
                _, first = found.get(name, ("", OURS))
                refuse(f"{_WORDS[kind]} {name!r}", origin, first)
            else:
                found[name] = place, origin
    return found


def operation(name: str) -> Any:
    """The code for a `BACKEND.OPERATION`."""
    return loaded(named("operations")[name])


def listed(kind: Listed, taken: Container[str] = ()) -> tuple[Any, ...]:
    """All listed additions of a kind, over all rooms, loaded. A plug-in's section or format is left
    out if its name is taken, as in `named`."""
    found: list[Any] = []
    owners: dict[str, str] = {}
    for room, origin in _with_origins():
        for place in getattr(room, kind):
            for value in _loaded_of(place, origin):
                name = getattr(value, "name", place)
                if origin != OURS and (name in taken or name in owners):
                    refuse(f"{kind[:-1]} {name!r}", origin, owners.get(name, OURS))
                else:
                    owners[name] = origin
                    found.append(value)
    return tuple(found)


def sources_of_machines() -> tuple[Any, ...]:
    """The functions of all rooms that turn the value of `--machine` into a description."""
    return tuple(
        value
        for place, origin in _named("machines").values()
        for value in _loaded_of(place, origin)
    )


def benchmarks() -> Iterator[RoomBenchmarks]:
    """The benchmarks of all rooms, loaded."""
    for room, origin in _with_origins():
        for heading, place in room.benchmarks.items():
            for rows in _loaded_of(place, origin):
                yield RoomBenchmarks(heading, rows, origin)


def _loaded_of(place: str, origin: str) -> Iterator[Any]:
    """The object at a place; of a plug-in, none if it fails to load."""
    try:
        yield loaded(place)
    except Exception as error:
        if origin == OURS:
            raise
        leave_out(f"{place} of {origin}", f"{type(error).__name__}: {error}")


def _with_origins() -> Iterator[tuple[Room, str]]:
    yield from ((room, OURS) for room in our_rooms())
    yield from ((plugin.room, plugin.origin) for plugin in plugins())


@cache
def our_rooms() -> tuple[Room, ...]:
    """The rooms of linkgauge itself, by name."""
    folder = import_module(GROUP).__path__
    names = sorted(module.name for module in iter_modules(folder))
    return tuple(import_module(f"{GROUP}.{name}").ROOM for name in names)


@cache
def plugins() -> tuple[Plugin, ...]:
    """The plug-ins, by the name of their package. A plug-in that fails to load, or whose room has
    the name of another, is left out."""
    found: dict[str, Plugin] = {}
    ours = {room.name for room in our_rooms()}
    for package, version, place in sorted(_offered()):
        origin = f"{package} {version}"
        for room in _loaded_of(place, origin):
            if not isinstance(room, Room):
                leave_out(f"{place} of {origin}", "it is no Room")
            elif room.name in ours or room.name in found:
                first = OURS if room.name in ours else found[room.name].origin
                refuse(f"room {room.name!r}", origin, first)
            else:
                found[room.name] = Plugin(package, version, room)
    return tuple(found.values())


def _offered() -> Iterator[tuple[str, str, str]]:
    """The package, its version and the place of each room that an installed package offers. The
    files are read here because importing Python's own look-up takes 20 ms."""
    for folder in map(Path, dict.fromkeys(sys.path)):
        try:
            files = list(folder.glob("*-info/entry_points.txt"))
            texts = [(file, file.read_text("utf-8")) for file in files]
        except (OSError, UnicodeDecodeError):
            continue
        for file, text in texts:
            if f"[{GROUP}]" in text:
                about = _headers(file.parent)
                for place in _places(text):
                    yield about.get("Name", file.parent.name), about.get("Version", ""), place


def _places(entry_points: str) -> Iterator[str]:
    """The `MODULE:NAME` of each entry point of the group in such a file."""
    lines = map(str.strip, entry_points.partition(f"[{GROUP}]")[2].splitlines())
    for line in takewhile(lambda line: not line.startswith("["), lines):
        if "=" in line and not line.startswith("#"):
            yield line.partition("=")[2].partition("[")[0].strip()


def _headers(folder: Path) -> dict[str, str]:
    """The headers of a package's metadata."""
    try:
        text = (folder / "METADATA").read_text("utf-8").partition("\n\n")[0]
    except OSError:
        return {}
    pairs = (line.partition(": ") for line in text.splitlines())
    return {name: value for name, _, value in pairs}


def additions(plugin: Plugin) -> Iterator[str]:
    """The additions of a plug-in, in words, by kind: `benchmarks My copies`."""
    for kind, value in zip(Room._fields[1:], plugin.room[1:], strict=True):
        if value:
            yield f"{kind} {', '.join(value)}"


def refuse(what: str, origin: str, first: str) -> None:
    """Leaves out an addition of a plug-in because `first` has one of this name."""
    leave_out(f"the {what} of {origin}", f"{first} has one of this name")


def leave_out(what: str, why: str) -> None:
    """Notes once that something of a plug-in is left out."""
    LEFT_OUT[f"{what} is left out: {why}"] = None

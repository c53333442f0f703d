"""The registry of features that are added to the core. The core imports none of them. Each folder
of `linkgauge.rooms` has a `Room` record named `ROOM`. Another package, a plug-in, offers a room by
an entry point of the group `linkgauge.rooms`. The code that a record names is loaded only when it
is used."""

from __future__ import annotations

import sys
from collections.abc import Container, Iterable, Iterator, Mapping
from functools import cache
from importlib import import_module
from itertools import takewhile
from operator import attrgetter
from pathlib import Path
from pkgutil import iter_modules
from typing import Any, Literal, NamedTuple, TypeVar

GROUP = "linkgauge.rooms"
"""The package with linkgauge's rooms, and the group of entry points of plug-ins."""
OURS = "linkgauge"
_T = TypeVar("_T")
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
    """A room's rows of `linkgauge.benchmarks.table`, with their heading and the room's origin."""

    heading: str
    rows: Iterable[Any]
    origin: str


def loaded(place: str) -> Any:
    """Loads and returns the object that `MODULE:NAME` or `MODULE:NAME.ATTRIBUTE` refers to."""
    module, _, name = place.partition(":")
    return attrgetter(name)(import_module(module))


def named(kind: Named, taken: Container[str] = ()) -> dict[str, str]:
    """Returns the `MODULE:NAME` of each addition of a kind, by the addition's name. A plug-in's
    addition is left out if its name is taken: by the core (`taken`), a room of linkgauge, or an
    earlier plug-in."""
    return {name: place for name, (place, _) in _named(kind, taken).items()}


def origin_of(kind: Named, name: str, taken: Container[str] = ()) -> str | None:
    """Returns the origin of the plug-in that adds this name, or None if no plug-in does."""
    _, origin = _named(kind, taken).get(name, ("", OURS))
    return None if origin == OURS else origin


def _named(kind: Named, taken: Container[str] = ()) -> dict[str, tuple[str, str]]:
    """Returns the `MODULE:NAME` and the origin of each addition of a kind, by the addition's
    name."""
    offered = (
        (name, place, origin)
        for room, origin in _with_origins()
        for name, place in getattr(room, kind).items()
    )
    return {name: (place, origin) for name, place, origin in accepted(_WORDS[kind], offered, taken)}


def operation(name: str) -> Any:
    """Loads and returns the code for a `BACKEND.OPERATION`."""
    return loaded(named("operations")[name])


def listed(kind: Listed, taken: Container[str] = ()) -> tuple[Any, ...]:
    """Loads and returns all listed additions of a kind, from all rooms. A plug-in's section or
    format is left out if its name is taken."""
    offered = (
        (getattr(value, "name", place), value, origin)
        for room, origin in _with_origins()
        for place in getattr(room, kind)
        for value in _loaded_of(place, origin)
    )
    return tuple(value for _, value, _ in accepted(kind[:-1], offered, taken))


def sources_of_machines() -> tuple[Any, ...]:
    """Returns the functions of all rooms that turn the value of `--machine` into a description."""
    return tuple(
        value
        for place, origin in _named("machines").values()
        for value in _loaded_of(place, origin)
    )


def benchmarks() -> Iterator[RoomBenchmarks]:
    """Loads and yields the benchmarks of all rooms."""
    for room, origin in _with_origins():
        for heading, place in room.benchmarks.items():
            for rows in _loaded_of(place, origin):
                yield RoomBenchmarks(heading, rows, origin)


def _loaded_of(place: str, origin: str) -> Iterator[Any]:
    """Yields the object that `MODULE:NAME` refers to. Yields nothing if code of a plug-in fails to
    load."""
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
    """Returns the rooms of linkgauge itself, in the order of their names."""
    folder = import_module(GROUP).__path__
    names = sorted(module.name for module in iter_modules(folder))
    return tuple(import_module(f"{GROUP}.{name}").ROOM for name in names)


@cache
def plugins() -> tuple[Plugin, ...]:
    """Returns the plug-ins, sorted by the names of their packages. A plug-in is left out if it
    fails to load, or if another room has its name."""
    ours = {room.name for room in our_rooms()}
    offered = ((plugin.room.name, plugin, plugin.origin) for plugin in _loaded_plugins())
    return tuple(plugin for _, plugin, _ in accepted("room", offered, ours))


def _loaded_plugins() -> Iterator[Plugin]:
    for package, version, place in sorted(_offered()):
        origin = f"{package} {version}"
        for room in _loaded_of(place, origin):
            if isinstance(room, Room):
                yield Plugin(package, version, room)
            else:
                leave_out(f"{place} of {origin}", "it is no Room")


def _offered() -> Iterator[tuple[str, str, str]]:
    """Yields the package, the version and the `MODULE:NAME` of each room that installed packages
    offer. Reads the files itself, because importing `importlib.metadata` takes 20 ms."""
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
    """Yields the `MODULE:NAME` of each entry point of the group, from the text of a file
    `entry_points.txt`."""
    lines = map(str.strip, entry_points.partition(f"[{GROUP}]")[2].splitlines())
    for line in takewhile(lambda line: not line.startswith("["), lines):
        if "=" in line and not line.startswith("#"):
            yield line.partition("=")[2].partition("[")[0].strip()


def _headers(folder: Path) -> dict[str, str]:
    """Returns the headers of a package's metadata file."""
    try:
        text = (folder / "METADATA").read_text("utf-8").partition("\n\n")[0]
    except OSError:
        return {}
    pairs = (line.partition(": ") for line in text.splitlines())
    return {name: value for name, _, value in pairs}


def additions(plugin: Plugin) -> Iterator[str]:
    """Yields a text for each kind of addition of a plug-in: `backends npu`."""
    for kind, value in zip(Room._fields[1:], plugin.room[1:], strict=True):
        if value:
            yield f"{kind} {', '.join(value)}"


def accepted(
    what: str, offered: Iterable[tuple[str, _T, str]], taken: Container[str] = ()
) -> Iterator[tuple[str, _T, str]]:
    """Yields the additions of a kind, each as its name, its value and its origin. Leaves out a
    plug-in's addition if the core (`taken`) or an earlier origin has the name."""
    owners: dict[str, str] = {}
    for name, value, origin in offered:
        if origin != OURS and (name in taken or name in owners):
            first = owners.get(name, OURS)
            leave_out(f"the {what} {name!r} of {origin}", f"{first} has one of this name")
        else:
            owners[name] = origin
            yield name, value, origin


def leave_out(what: str, why: str) -> None:
    """Reports, only once, that a part of a plug-in is left out."""
    LEFT_OUT[f"{what} is left out: {why}"] = None

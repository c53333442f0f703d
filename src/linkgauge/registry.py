"""The registry of rooms: features that are added to the core. The core imports none of them.

`linkgauge.rooms` has the `Room` records of linkgauge itself. A plug-in offers a room by an entry
point of the group `linkgauge.rooms`. What a record names is loaded only when it is used."""

from __future__ import annotations

import sys
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from functools import cache, partial
from importlib import import_module
from itertools import takewhile
from operator import attrgetter, itemgetter
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeVar, get_args

from linkgauge.hooks import OURS, Hook, Unfit, brief, expect, leave_out, refuse
from linkgauge.machine.search_path import GROUP, entry_points, hiding, text_of
from linkgauge.model.printable import printable

_T = TypeVar("_T")

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

    commands: Functions that take a struct of options (`linkgauge.cli.options`) and return an exit
        code, by the NAME in `linkgauge NAME`.
    benchmarks: Rows of `linkgauge.benchmarks.table`, by the heading under which they are listed.
    backends: Functions like `create(engines, host)` of the core's backends, by name.
    ranks: Functions like `create` in the core's `rank` modules (`linkgauge.backends.open_rank`).
    operations: Functions for operations that the core's backend lacks, by `BACKEND.OPERATION`.
    checks: Functions of the doctor that return findings from `Evidence`.
    sections, formats: `Section` records of a report, and `Format` records of documents.
    tools: Functions that act as another tool, by name. They take the tool's arguments and the place
        to measure (`linkgauge.cli.tool`), and return an exit code.
    kept: By file name, the `Document` of each kind of file that is stored besides runs.
    machines: By source, functions that turn a value of `--machine` into the name and YAML of a
        simulated machine, or into None if the source does not know the value."""

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
    package: str
    version: str
    room: Room

    @property
    def origin(self) -> str:
        return f"{self.package} {self.version}".rstrip()


class RoomBenchmarks(NamedTuple):
    """A room's benchmarks: heading, `MODULE:NAME`, and the hook that catches a plug-in's errors."""

    heading: str
    place: str
    hook: Hook


def loaded(place: str) -> Any:
    """Loads and returns the object that `MODULE:NAME` or `MODULE:NAME.ATTRIBUTE` refers to."""
    module, _, name = place.partition(":")
    return attrgetter(name)(import_module(module))


def deferred(place: str) -> Callable[..., Any]:
    def call(*given: Any, **named: Any) -> Any:
        return loaded(place)(*given, **named)

    return call


def named(kind: Named, taken: Container[str] = ()) -> dict[str, str]:
    """Returns the additions of a kind: `MODULE:NAME` by name. Leaves out a plug-in's addition whose
    name is taken by the core (`taken`), a room of linkgauge, or an earlier plug-in."""
    return dict(map(itemgetter(0, 1), _named(kind, taken)))


def hook_of(kind: Named, name: str, taken: Container[str] = ()) -> Hook:
    origins = dict(map(itemgetter(0, 2), _named(kind, taken)))
    return Hook(f"the {_WORDS[kind]} {name!r}", origins.get(name, OURS))


def _named(kind: Named, taken: Container[str]) -> Iterator[tuple[str, str, str]]:
    offered = (
        (name, place, origin)
        for room, origin in _with_origins()
        for name, place in getattr(room, kind).items()
    )
    return accepted(_WORDS[kind], offered, taken)


def operation(name: str) -> Any:
    return loaded(named("operations")[name])


def listed(
    kind: Listed, fitted: Callable[[Any, Hook], _T], taken: Container[str] = ()
) -> tuple[_T, ...]:
    """Loads and returns all additions of a kind, without a plug-in's additions whose name is taken.
    `fitted` checks a plug-in's addition and returns it with its calls guarded by the hook; it
    raises Unfit for a wrong type."""

    def made(place: str, hook: Hook) -> _T:
        value = loaded(place)
        return value if hook.is_ours else fitted(value, hook)

    offered = (
        (getattr(value, "name", place), value, origin)
        for room, origin in _with_origins()
        for place in getattr(room, kind)
        for value in _made_of(place, Hook(f"the {kind[:-1]} {place}", origin), made)
    )
    return tuple(map(itemgetter(1), accepted(kind[:-1], offered, taken)))


def sources_of_machines() -> Iterator[Callable[[str], tuple[str, str] | None]]:
    """Yields the rooms' functions that turn the value of `--machine` into name and description."""
    for name, place in named("machines").items():
        yield partial(_described, place, hook_of("machines", name))


def _described(place: str, hook: Hook, value: str) -> tuple[str, str] | None:
    return hook.tried(lambda: _machine(loaded(place)(value)), None)


def _machine(machine: Any) -> tuple[str, str] | None:
    if machine is None:
        return None
    if not isinstance(machine, tuple) or [*map(type, machine)] != [str, str]:
        raise Unfit(f"{brief(machine)} is no name and YAML")
    return machine


def benchmarks() -> Iterator[RoomBenchmarks]:
    for room, origin in _with_origins():
        for heading, place in room.benchmarks.items():
            yield RoomBenchmarks(heading, place, Hook(place, origin))


def _made_of(place: str, hook: Hook, made: Callable[[str, Hook], _T]) -> tuple[_T, ...]:
    return hook.tried(lambda: (made(place, hook),), ())


def _with_origins() -> Iterator[tuple[Room, str]]:
    for room in our_rooms():
        yield room, OURS
    for plugin in plugins():
        yield plugin.room, plugin.origin


def our_rooms() -> tuple[Room, ...]:
    return import_module(GROUP).ROOMS  # type: ignore[no-any-return]


@cache
def plugins() -> tuple[Plugin, ...]:
    """Returns plug-ins sorted by package. Leaves out those that fail or have a taken name."""
    ours = set(map(attrgetter("name"), our_rooms()))
    return tuple(map(itemgetter(1), accepted("room", _loaded_plugins(), ours)))


def _loaded_plugins() -> Iterator[tuple[str, Plugin, str]]:
    offered: list[tuple[str, str, str, Path]] = []
    # Not by importlib.metadata, because its import takes 20 ms.
    for folder in map(Path, dict.fromkeys(sys.path)):
        for file, text in entry_points(folder):
            known = _headers(file.parent)
            name, version = known.get("Name", file.parent.name), known.get("Version", "")
            offered += ((name, version, place, file.parent) for place in _places(text))
    for package, version, place, about in sorted(offered):
        hook = Hook(place or "an empty entry point", f"{package} {version}".rstrip())
        for file in hiding(about):
            leave_out(Hook(str(file), hook.origin), "another package has this name")
        for room in _made_of(place, hook, lambda where, _: _checked(loaded(where))):
            plugin = Plugin(package, version, room)
            yield room.name, plugin, plugin.origin


def _checked(room: Any) -> Room:
    expect(room, Room)
    _check_name("name", room.name)
    for kind, value in zip(Room._fields[1:], room[1:], strict=True):
        listing = kind in get_args(Listed)
        if not isinstance(value, (tuple | list) if listing else Mapping):
            raise Unfit(f"{kind} is {brief(value)}, not a {'tuple' if listing else 'dict'}")
        for place in value.values() if isinstance(value, Mapping) else value:
            _check_name(kind, place)
            if not all(place.partition(":")[::2]):
                raise Unfit(f"{kind} has {brief(place)}, not MODULE:NAME")
        for name in () if listing else value:
            _check_name(kind, name)
    return room  # type: ignore[no-any-return]


def _check_name(kind: str, name: object) -> None:
    if not isinstance(name, str) or not name or printable(name) != name:
        raise Unfit(f"{kind} has {brief(name)}, not a printable text")


def _places(entry_points: str) -> Iterator[str]:
    lines = map(str.strip, entry_points.partition(f"[{GROUP}]")[2].splitlines())
    for line in takewhile(lambda line: not line.startswith("["), lines):
        if "=" in line and not line.startswith("#"):
            yield line.partition("=")[2].partition("[")[0].strip()


def _headers(folder: Path) -> dict[str, str]:
    text = text_of(folder / "METADATA").partition("\n\n")[0]
    pairs = (line.partition(": ") for line in text.splitlines())
    return {name: printable(value) for name, _, value in pairs}


def additions(plugin: Plugin) -> Iterator[str]:
    """Yields a text for each kind of addition of a plug-in: `backends npu`."""
    for kind, value in zip(Room._fields[1:], plugin.room[1:], strict=True):
        if value:
            yield f"{kind} {', '.join(value)}"


def accepted(
    what: str, offered: Iterable[tuple[str, _T, str]], taken: Container[str] = ()
) -> Iterator[tuple[str, _T, str]]:
    """Yields the name, value and origin of each offered addition. Leaves out a plug-in's addition
    if its name is in `taken` (the core's names) or an earlier addition has the same name."""
    owners: dict[str, str] = {}
    for name, value, origin in offered:
        if origin != OURS and (name in taken or name in owners):
            first = owners.get(name, OURS)
            refuse(Hook(f"the {what} {name!r}", origin), f"{first} has one of this name")
        else:
            owners[name] = origin
            yield name, value, origin

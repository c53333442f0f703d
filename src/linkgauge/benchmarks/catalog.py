"""All benchmarks by name, in the order in which they are listed and run."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from functools import cache, partial
from itertools import chain

from msgspec.structs import replace

from linkgauge.hooks import OURS, Hook, Unfit, brief, expect
from linkgauge.model.errors import InputError
from linkgauge.model.hardware.machine import Device, Node
from linkgauge.model.names import UnknownName, hint
from linkgauge.model.transfer import Cell
from linkgauge.model.units import count_of
from linkgauge.registry import accepted, benchmarks, loaded

from .table import COMPARISON, FIRST_LOOK, DeviceSet, Row, Sweep
from .vm import VM

_HERE = __name__.rpartition(".")[0]
_FIRST_LISTED = f"{_HERE}.copies:NVBANDWIDTH"
_PLACES: Mapping[str, Sequence[str]] = {
    "Between the host and devices": ("copies:WITH_HOST",),
    "Between devices": ("copies:BETWEEN_DEVICES",),
    "Copies by host threads": ("copies:HOST", "host_sweeps:SWEEPS"),
    "Bandwidth of host memory": ("memory_stream:MEMORY_STREAM",),
    "Latency of host memory and CPUs": ("host_latency:LATENCIES",),
    "Pages and placement of host memory": ("host_sweeps:PAGES",),
    "Arithmetic of CPUs": ("host_sweeps:PRIMES",),
    "Collectives": ("collectives:COLLECTIVES",),
    "Memory and arithmetic of devices": ("gpu:GPU",),
    "More and more copies at once": ("gpu:CONCURRENCY",),
    "Between all devices at once": ("gpu:WITHIN_NODE",),
    "Copies while a device computes": ("gpu:OVERLAP",),
    "Single copies, flags and launches of devices": ("latency:LATENCY_OF_DEVICES",),
    "Between processes and nodes": ("processes:BETWEEN_PROCESSES",),
    "Over network interfaces": (),  # a room fills it; this is where it is listed
    "Between many nodes": ("nodes:NODES",),
}
"""The files and names of the core's rows, by what they measure. A file is loaded when its rows are
asked for."""


def _sample(rank: str = "") -> DeviceSet:
    names = (f"sim:{index}{rank and f'{rank}{index}'}" for index in range(4))
    devices = tuple(Device(name, "a device", 1 << 40, 1 << 40) for name in names)
    return DeviceSet("sim", (Node(0, (0,)), Node(1, (1,))), devices)


def check(row: Row | Sweep) -> None:
    """Raises an exception if a plug-in's benchmark has an invalid name or faulty cells."""
    if not row.name.isidentifier():
        raise Unfit(f"{brief(row.name)} is no name of a benchmark")
    if isinstance(row, Row):
        row.lay_out(_sample("@" if row.across_ranks else ""))
    elif not callable(row.cells):
        raise Unfit(f"{brief(row.cells)} is no function")


def guarded(row: Row | Sweep, hook: Hook) -> Row | Sweep:
    """Returns a sweep of a plug-in so that it makes no cells, instead of raising, if the plug-in
    fails. Other benchmarks stay as they are."""
    if hook.is_ours or isinstance(row, Row):
        return row
    makes, size, left_out = row.cells, row.size, row.left_out
    return replace(
        row,
        cells=lambda on: iter(hook.items(lambda: makes(on), Cell)),
        size=(lambda on: hook.tried(lambda: expect(size(on), int), 0)) if callable(size) else size,
        left_out=left_out and (lambda on: hook.tried(lambda: expect(left_out(on), str), "")),
        reason=row.reason or f"{hook} made no cells",
    )


def _rows_of(places: Iterable[str]) -> Iterator[Row | Sweep]:
    for place in places:
        yield from loaded(f"{_HERE}.{place}")


@cache
def _with_rooms() -> tuple[dict[str, tuple[Row | Sweep, ...]], dict[str, str]]:
    # A plug-in's benchmark is left out if its name is taken.
    found = {heading: tuple(_rows_of(places)) for heading, places in _PLACES.items()}
    origins = dict[str, str]()
    taken = {row.name for rows in found.values() for row in rows}
    for name, (heading, row), origin in accepted("benchmark", _rows_of_rooms(), taken):
        found[heading] = (*found.get(heading, ()), row)
        if origin != OURS:
            origins[name] = origin
    return found, origins


def _rows_of_rooms() -> Iterator[tuple[str, tuple[str, Row | Sweep], str]]:
    for heading, place, hook in benchmarks():
        for row in hook.items(partial(loaded, place), Row | Sweep, check):
            yield row.name, (heading, guarded(row, hook)), hook.origin


def groups() -> Mapping[str, tuple[Row | Sweep, ...]]:
    return _with_rooms()[0]


@cache
def _of_core(name: str) -> Row | Sweep | None:
    for places in _PLACES.values():
        for row in _rows_of(places):
            if row.name == name:
                return row
    return None


def origin_of(name: str) -> str | None:
    return None if _of_core(name) is not None else _with_rooms()[1].get(name)


class _Catalog(Mapping[str, Row | Sweep]):
    """All benchmarks by name. A lookup imports the core's modules only until it finds the name."""

    def __getitem__(self, name: str) -> Row | Sweep:
        row = _of_core(name)
        return _all_rows()[name] if row is None else _listed(row)

    def __iter__(self) -> Iterator[str]:
        return iter(_all_rows())

    def __len__(self) -> int:
        return len(_all_rows())


CATALOG: Mapping[str, Row | Sweep] = _Catalog()


@cache
def _all_rows() -> Mapping[str, Row | Sweep]:
    every = [*loaded(_FIRST_LISTED), *(row for rows in groups().values() for row in rows)]
    return {row.name: _listed(row) for row in every}


def _listed(row: Row | Sweep) -> Row | Sweep:
    return replace(row, profiles=(*row.profiles, COMPARISON)) if row.name in VM else row


_FIRST: dict[str | None, tuple[str, ...]] = {
    COMPARISON: VM,
    FIRST_LOOK: ("memory_stream_read", "memory_stream_copy", "memory_stream_triad"),
}
"""The benchmarks that a profile measures first, in this order."""
_MOST_WANTED: tuple[str, ...] = (
    "host_to_device_memcpy_*",
    "device_to_host_memcpy_*",
    "device_to_device_memcpy_*",
    "device_local_copy",
    "*_bidirectional_memcpy_*",
    "*_device_latency_*",
    "all_to_*",
    "host_to_all_*",
    "one_to_all_*",
    "all_reduce",
    "all_gather",
    "reduce_scatter",
    "alltoall",
)
_ALSO_WANTED = ("memory_stream_*", "memory_latency", "host_to_host_*", "gpu_*")
"""What people ask for first, in patterns of names. Where time is short, it goes to these first, and
then to the other benchmarks in the order of the catalog. Those that accelerators carry out come
before those of the host alone."""


def _most_wanted() -> Iterator[str]:
    collectives = (row.name for row in _rows_of(_PLACES["Collectives"]))
    return chain(_MOST_WANTED, collectives, _ALSO_WANTED)


def ranked(of_host: Mapping[str, bool], asked: Sequence[str], profile: str) -> tuple[str, ...]:
    """Returns the names of benchmarks in the order of measuring: those in `asked` first, then those
    that the profile prefers. `of_host` has True for a benchmark of only the host."""
    if len(of_host) < 2:
        return tuple(of_host)
    patterns = _FIRST.get(profile) or _most_wanted()  # without preferences, by popularity
    wanted = (name for like in patterns for name in of_host if fnmatchcase(name, like))
    order = list(dict.fromkeys((*wanted, *of_host)))
    if profile not in _FIRST:
        order.sort(key=of_host.__getitem__)
    return tuple(dict.fromkeys((*(name for name in asked if name in of_host), *order)))


_SHORT = {
    "h2d": "host_to_device", "d2h": "device_to_host", "h2h": "host_to_host",
    "d2d": "device_to_device", "p2p": "device_to_device",
}  # fmt: skip
"""How people abbreviate the beginnings of names."""
_NAMED = 3
"""The most benchmarks that a message names."""


def _nearest(name: str) -> str:
    words = [_SHORT.get(word, word) for word in name.lower().replace("-", "_").split("_")]
    prefix = "_".join(words)
    begin = [known for known in CATALOG if known.startswith(prefix)]
    if begin:
        such = "" if prefix == name else f", such as {begin[0]}"
        return f": --prefix {prefix} selects {count_of(len(begin), 'benchmark')}{such}"
    having = [known for known in CATALOG if all(word in known for word in words)]
    if len(having) < 2:
        return hint(name, having or CATALOG, ": see 'linkgauge list'")
    more = f" and {len(having) - _NAMED} more (linkgauge list)" if having[_NAMED:] else ""
    return f": there are {', '.join(having[:_NAMED])}{more}"


def check_known(names: Iterable[str]) -> None:
    for name in sorted(names):
        if name not in CATALOG:
            raise UnknownName("benchmark", name, _nearest(name))


def select(
    names: Iterable[str],
    prefixes: Sequence[str],
    *,
    only_d2d: bool = False,
    profile: str | None = None,
) -> tuple[Row | Sweep, ...]:
    """Returns the benchmarks with these names or prefixes or, if both are empty, those of `profile`
    (None: all). The order is the profile's or else the catalog's. If `only_d2d` is true, keeps only
    benchmarks between devices. Raises InputError for a name or prefix that matches nothing."""
    wanted = set(names)
    check_known(wanted)
    for prefix in prefixes:
        found = {name for name in CATALOG if name.startswith(prefix)}
        if not found:
            raise InputError(f"no benchmark begins with {prefix!r}: see 'linkgauge list'")
        wanted |= found
    ordered: Iterable[str] = wanted
    if len(wanted) != 1:  # else the others are not loaded
        of_profile = {name for name, row in CATALOG.items() if profile in (None, *row.profiles)}
        chosen, first = wanted or of_profile, _FIRST.get(profile, ())
        ordered = (name for name in dict.fromkeys((*first, *CATALOG)) if name in chosen)
    rows = tuple(map(CATALOG.__getitem__, ordered))
    return tuple(row for row in rows if row.between_devices) if only_d2d else rows

"""All benchmarks by name, in the order in which they are listed and run."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from functools import partial
from itertools import chain

from msgspec.structs import replace

from linkgauge.hooks import OURS, Hook, Unfit, brief, expect
from linkgauge.model.errors import InputError
from linkgauge.model.hardware.machine import Device, Node
from linkgauge.model.names import UnknownName, hint
from linkgauge.model.transfer import Cell
from linkgauge.registry import accepted, benchmarks, loaded

from .collectives import COLLECTIVES
from .copies import BETWEEN_PROCESSES, HOST, NVBANDWIDTH
from .gpu import CONCURRENCY, GPU, OVERLAP, WITHIN_NODE
from .host_latency import LATENCIES
from .host_sweeps import PAGES, PRIMES, SWEEPS
from .latency import LATENCY_OF_DEVICES
from .memory_stream import MEMORY_STREAM
from .nodes import NODES
from .table import COMPARISON, FIRST_LOOK, DeviceSet, Row, Sweep
from .vm import VM

GROUPS: dict[str, Sequence[Row | Sweep]] = {
    "Between the host and devices": [row for row in NVBANDWIDTH if "host" in row.name],
    "Between devices": [row for row in NVBANDWIDTH if "host" not in row.name],
    "Copies by host threads": (*HOST, *SWEEPS),
    "Bandwidth of host memory": MEMORY_STREAM,
    "Latency of host memory and CPUs": LATENCIES,
    "Pages and placement of host memory": PAGES,
    "Arithmetic of CPUs": PRIMES,
    "Collectives": COLLECTIVES,
    "Memory and arithmetic of devices": GPU,
    "More and more copies at once": CONCURRENCY,
    "Between all devices at once": WITHIN_NODE,
    "Copies while a device computes": OVERLAP,
    "Single copies, flags and launches of devices": LATENCY_OF_DEVICES,
    "Between processes and nodes": BETWEEN_PROCESSES,
    "Over network interfaces": (),  # a room fills it; this is where it is listed
    "Between many nodes": NODES,
}
"""The benchmarks by what they measure."""
ORIGINS: dict[str, str] = {}
"""The name of the plug-in for each benchmark that a plug-in adds."""


def _sample(rank: str = "") -> DeviceSet:
    names = (f"sim:{index}{rank and f'{rank}{index}'}" for index in range(4))
    devices = tuple(Device(name, "a device", 1 << 40, 1 << 40) for name in names)
    return DeviceSet("sim", (Node(0, (0,)), Node(1, (1,))), devices)


def check(row: Row | Sweep) -> None:
    """Raises an exception for a plug-in's benchmark without name, or with faulty cells."""
    if not row.name.isidentifier():
        raise Unfit(f"{brief(row.name)} is no name of a benchmark")
    if isinstance(row, Row):
        row.lay_out(_sample("@" if row.across_ranks else ""))
    elif not callable(row.cells):
        raise Unfit(f"{brief(row.cells)} is no function")


def guarded(row: Row | Sweep, hook: Hook) -> Row | Sweep:
    """A plug-in's benchmark that never raises, and has no cells if it fails to make them."""
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


def _add_those_of_rooms() -> None:
    """A plug-in's benchmark is left out if its name is taken."""
    taken = {row.name for rows in GROUPS.values() for row in rows}
    for name, (heading, row), origin in accepted("benchmark", _rows_of_rooms(), taken):
        GROUPS[heading] = (*GROUPS.get(heading, ()), row)
        if origin != OURS:
            ORIGINS[name] = origin


def _rows_of_rooms() -> Iterator[tuple[str, tuple[str, Row | Sweep], str]]:
    for heading, place, hook in benchmarks():
        for row in hook.items(partial(loaded, place), Row | Sweep, check):
            yield row.name, (heading, guarded(row, hook)), hook.origin


_add_those_of_rooms()


def _listed(row: Row | Sweep) -> Row | Sweep:
    """Returns the benchmark, and adds the profile `vm` to its profiles if `vm` lists its name."""
    return replace(row, profiles=(*row.profiles, COMPARISON)) if row.name in VM else row


CATALOG = {row.name: _listed(row) for row in chain(NVBANDWIDTH, *GROUPS.values())}
_FIRST: dict[str | None, tuple[str, ...]] = {
    COMPARISON: VM,
    FIRST_LOOK: ("memory_stream_read", "memory_stream_copy", "memory_stream_triad"),
}
"""The benchmarks that a profile measures first, in this order."""
MOST_WANTED: tuple[str, ...] = (
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
    *(row.name for row in COLLECTIVES),
    "memory_stream_*",
    "memory_latency",
    "host_to_host_*",
    "gpu_*",
)
"""What people ask for first, in patterns of names. Where time is short, it goes to these first, and
then to the other benchmarks in the order of the catalog. Those that accelerators carry out come
before those of the host alone."""


def ranked(of_host: Mapping[str, bool], asked: Sequence[str], profile: str) -> tuple[str, ...]:
    """Those that the user `asked` for by name first, then those that the profile or else most
    people want. `of_host` says of each benchmark whether only the host is measured."""
    patterns = _FIRST.get(profile, MOST_WANTED)
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
    """Names that begin so, have these words, or are spelled similarly."""
    words = [_SHORT.get(word, word) for word in name.lower().replace("-", "_").split("_")]
    prefix = "_".join(words)
    begin = [known for known in CATALOG if known.startswith(prefix)]
    if begin:
        such = "" if prefix == name else f", such as {begin[0]}"
        return f": --prefix {prefix} selects {len(begin)}{such}"
    having = [known for known in CATALOG if all(word in known for word in words)]
    if len(having) < 2:
        return hint(name, having or CATALOG, ": see 'linkgauge list'")
    more = f" and {len(having) - _NAMED} more (linkgauge list)" if having[_NAMED:] else ""
    return f": there are {', '.join(having[:_NAMED])}{more}"


def check_known(names: Iterable[str]) -> None:
    """Raises UnknownName for a name that is no benchmark's."""
    for name in sorted({*names} - CATALOG.keys()):
        raise UnknownName("benchmark", name, _nearest(name))


def select(
    names: Iterable[str],
    prefixes: Sequence[str],
    *,
    only_d2d: bool = False,
    profile: str | None = None,
) -> tuple[Row | Sweep, ...]:
    """Benchmarks by name or by the beginning of the name; without either, those of the profile, or
    all. The order is the catalog's, unless the profile has its own. `only_d2d` keeps only those
    between devices. Raises InputError for a name or a prefix that matches nothing."""
    wanted = set(names)
    check_known(wanted)
    for prefix in prefixes:
        found = {name for name in CATALOG if name.startswith(prefix)}
        if not found:
            raise InputError(f"no benchmark begins with {prefix!r}: see 'linkgauge list'")
        wanted |= found
    of_profile = {name for name, row in CATALOG.items() if profile in (None, *row.profiles)}
    chosen = wanted or of_profile
    ordered = (CATALOG[name] for name in dict.fromkeys((*_FIRST.get(profile, ()), *CATALOG)))
    return tuple(
        row for row in ordered if row.name in chosen and (row.between_devices or not only_d2d)
    )

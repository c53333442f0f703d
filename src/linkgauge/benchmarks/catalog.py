"""All benchmarks by name, in the order in which they are listed and run."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain

from msgspec.structs import replace

from linkgauge.model.errors import InputError
from linkgauge.model.names import hint
from linkgauge.registry import OURS, accepted, benchmarks, leave_out

from .collectives import COLLECTIVES
from .copies import HOST, NVBANDWIDTH
from .gpu import CONCURRENCY, GPU, OVERLAP, WITHIN_NODE
from .host_latency import LATENCIES
from .host_sweeps import PAGES, PRIMES, SWEEPS
from .latency import LATENCY_OF_DEVICES
from .memory_stream import MEMORY_STREAM
from .multinode import BETWEEN_PROCESSES
from .nodes import NODES
from .table import COMPARISON, FIRST_LOOK, Row, Sweep
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


def _add_those_of_rooms() -> None:
    """Adds the benchmarks of optional packages and plug-ins to the catalog. A plug-in's benchmark
    is left out if its name is taken."""
    taken = {row.name for rows in GROUPS.values() for row in rows}
    for name, (heading, row), origin in accepted("benchmark", _rows_of_rooms(), taken):
        GROUPS[heading] = (*GROUPS.get(heading, ()), row)
        if origin != OURS:
            ORIGINS[name] = origin


def _rows_of_rooms() -> Iterator[tuple[str, tuple[str, Row | Sweep], str]]:
    """Yields the name of each benchmark of a room, its heading and row, and its origin."""
    for heading, rows, origin in benchmarks():
        for row in rows:
            if isinstance(row, Row | Sweep):
                yield row.name, (heading, row), origin
            else:
                leave_out(f"{row!r:.60} of {origin}", "it is no Row or Sweep")


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


def select(
    names: Iterable[str],
    prefixes: Sequence[str],
    *,
    only_d2d: bool = False,
    profile: str | None = None,
) -> tuple[Row | Sweep, ...]:
    """Returns the chosen benchmarks. A benchmark is chosen by its name or by the beginning of its
    name. Without names and prefixes, all benchmarks of the profile are chosen, or all if there is
    no profile. The order is the catalog's, unless the profile has its own. `only_d2d` keeps only
    benchmarks between devices.

    Raises InputError for a name or a prefix that matches nothing."""
    wanted = set(names)
    for name in sorted(wanted - CATALOG.keys()):
        begin = sum(known.startswith(name) for known in CATALOG)
        otherwise = ": see 'linkgauge list'"
        near = f": --prefix {name} selects {begin}" if begin else hint(name, CATALOG, otherwise)
        raise InputError(f"unknown benchmark {name!r}{near}")
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

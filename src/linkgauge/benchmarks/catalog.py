"""All benchmarks, by name, in the order in which they are listed and run."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence

from linkgauge.model.errors import InputError

from .copies import HOST, NVBANDWIDTH
from .gpu import GPU
from .host_latency import LATENCIES
from .host_pages import PAGES
from .host_sweeps import SWEEPS
from .memory_stream import MEMORY_STREAM
from .primes import PRIMES
from .table import Row, Sweep

_ALL: tuple[Row | Sweep, ...] = (
    *NVBANDWIDTH,
    *HOST,
    *SWEEPS,
    *MEMORY_STREAM,
    *LATENCIES,
    *PAGES,
    *PRIMES,
    *GPU,
)
CATALOG = {row.name: row for row in _ALL}


def select(
    names: Iterable[str],
    prefixes: Sequence[str],
    *,
    only_d2d: bool = False,
    profile: str | None = None,
) -> tuple[Row | Sweep, ...]:
    """Benchmarks by name and by prefix, in the catalog's order; without either, those of the
    profile, or all without one. With `only_d2d`, only those between devices.

    Raises InputError for a name or a prefix that matches nothing.
    """
    wanted = set(names)
    for name in sorted(wanted - CATALOG.keys()):
        close = difflib.get_close_matches(name, CATALOG, n=1)
        hint = f", did you mean {close[0]!r}?" if close else ": see 'linkgauge list'"
        raise InputError(f"unknown benchmark {name!r}{hint}")
    for prefix in prefixes:
        found = {name for name in CATALOG if name.startswith(prefix)}
        if not found:
            raise InputError(f"no benchmark begins with {prefix!r}: see 'linkgauge list'")
        wanted |= found
    of_profile = {name for name, row in CATALOG.items() if profile in (None, *row.profiles)}
    chosen = wanted or of_profile
    return tuple(
        row
        for name, row in CATALOG.items()
        if name in chosen and (row.between_devices or not only_d2d)
    )

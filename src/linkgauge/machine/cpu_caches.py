"""The caches of CPUs."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

import msgspec

from linkgauge.model.host_details import Cache

from .cpu import threads_of
from .tree import Root, names_in, number, read_cpus, read_text

_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


def last_level_cache(root: Root, cpus: Iterable[int]) -> int | None:
    """Total bytes of the distinct last-level caches of these CPUs; None if sysfs shows none."""
    total = 0
    counted: set[int] = set()
    for cpu in cpus:
        if cpu in counted:
            continue
        outermost = max(_caches(root, cpu), key=lambda one: (one[0].level, one[1]), default=None)
        if outermost is not None:
            counted.update(outermost[1])
            total += outermost[0].size
    return total or None


def cache_levels(root: Root, cpus: Iterable[int]) -> tuple[Cache, ...]:
    """Each kind of cache that these CPUs have, from the innermost on, and how many of them share
    one: kernels also list CPUs there that are offline."""
    shown = set(cpus)
    found = {
        msgspec.structs.replace(cache, shared_by=len(shown.intersection(behind)))
        for cpu in shown
        for cache, behind in _caches(root, cpu)
    }
    return tuple(sorted(found, key=msgspec.structs.astuple))


def _caches(root: Root, cpu: int) -> Iterator[tuple[Cache, tuple[int, ...]]]:
    """The caches of a CPU, each with all CPUs that share it."""
    folder = f"sys/devices/system/cpu/cpu{cpu}/cache"
    for name in names_in(root, folder):
        cache = f"{folder}/{name}"
        level = number(read_text(root, f"{cache}/level"))
        size = re.fullmatch(r"([0-9]{1,12})([KMG]?)", read_text(root, f"{cache}/size") or "")
        if level is not None and size:
            # Linux before 2.6.32 has only the mask.
            shared = read_cpus(root, f"{cache}/shared_cpu_list", f"{cache}/shared_cpu_map")
            kind = (read_text(root, f"{cache}/type") or "").lower()
            behind = shared or threads_of(root, cpu)
            yield Cache(level, kind, int(size[1]) * _UNITS[size[2]], len(behind)), behind

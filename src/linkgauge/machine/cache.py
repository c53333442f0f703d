"""The caches that CPUs sit behind."""

from __future__ import annotations

import re
from collections.abc import Iterable

from .tree import Root, names_in, parse_cpu_list, read_text

_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


def last_level_cache(root: Root, cpus: Iterable[int]) -> int | None:
    """Bytes of all the distinct last-level caches behind these CPUs; None where sysfs is silent."""
    total = 0
    counted: set[int] = set()
    for cpu in cpus:
        if cpu in counted:
            continue
        outermost = _outermost(root, f"sys/devices/system/cpu/cpu{cpu}/cache")
        if outermost is not None:
            shared_by, size = outermost
            counted.update(parse_cpu_list(shared_by))
            total += size
    return total or None


def _outermost(root: Root, folder: str) -> tuple[str, int] | None:
    """Which CPUs share the cache of the highest level, and its bytes."""
    caches: list[tuple[int, str, int]] = []
    for name in names_in(root, folder):
        cache = f"{folder}/{name}"
        level = read_text(root, f"{cache}/level")
        size = re.fullmatch(r"([0-9]{1,12})([KMG]?)", read_text(root, f"{cache}/size") or "")
        if level and level.isdecimal() and size:
            shared_by = read_text(root, f"{cache}/shared_cpu_list") or ""
            caches.append((int(level), shared_by, int(size[1]) * _UNITS[size[2]]))
    if not caches:
        return None
    _, shared_by, size_in_bytes = max(caches)
    return shared_by, size_in_bytes

"""How large a benchmark's transfers are where nobody said so: the profile's size, or what it takes
to measure memory instead of caches."""

from __future__ import annotations

from linkgauge.model.machine import Machine
from linkgauge.model.transfer import Benchmark

_MI = 1 << 20

ENLARGED = ("quick", "standard")
"""Profiles of one size, which is to be the memory's. Others sweep over sizes."""
TIMES = 4
"""A buffer is so many times as large as the caches behind its threads (STREAM's rule)."""
SHARE = 8
"""And at most this part of the memory that is available: a cell has two of them."""


def size_of(benchmark: Benchmark, size: int, machine: Machine, profile: str | None) -> int:
    """Bytes of a benchmark where the profile has `size`; None as the profile: it was asked for."""
    if benchmark.size is not None:
        return benchmark.size
    if benchmark.backend != "host" or profile not in ENLARGED:
        return size
    nodes = machine.host.nodes
    caches = max((node.last_level_cache or 0 for node in nodes), default=0)
    free = [node.memory_available for node in nodes if node.memory_available is not None]
    wanted = -(-TIMES * caches // _MI) * _MI
    most = min(free, default=wanted * SHARE) // SHARE
    return max(size, min(wanted, most // _MI * _MI))


def title_of(benchmark: Benchmark, size: int, machine: Machine, profile: str | None) -> str:
    """Of a sweep's sizes, those that the caches hold are not the memory's, and say so."""
    caches = min((node.last_level_cache or 0 for node in machine.host.nodes), default=0)
    swept = benchmark.size is None and profile is not None
    cached = benchmark.backend == "host" and swept and size < caches
    return f"{benchmark.title}, of the caches" if cached else benchmark.title

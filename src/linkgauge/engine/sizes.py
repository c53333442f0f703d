"""Default transfer sizes of a benchmark: the profile's, or what it takes to measure memory instead
of caches."""

from __future__ import annotations

from linkgauge.model.machine import Machine
from linkgauge.model.transfer import Benchmark

_MI = 1 << 20

ENLARGED = ("quick", "standard", "vm")
"""Profiles with one size, which must measure memory. The others sweep over sizes."""
TIMES = 4
"""A buffer is this many times as large as the caches behind its threads (STREAM's rule)."""
ARRAY = 64 * _MI
"""Least size of an array of STREAM's if memory suffices. What is beyond the caches is enough."""
SHARE = 8
"""At most this fraction (1/8) of the available memory: a cell has two or three buffers."""


def size_of(benchmark: Benchmark, size: int, machine: Machine, profile: str | None) -> int:
    """Bytes of a benchmark if the profile has `size`; with `profile` None the user asked for it."""
    if benchmark.size is not None:
        return benchmark.size
    if benchmark.backend != "host" or profile not in ENLARGED:
        return size
    nodes = machine.host.nodes
    caches = max((node.last_level_cache or 0 for node in nodes), default=0)
    free = [node.memory_available for node in nodes if node.memory_available is not None]
    wanted = -(-TIMES * caches // _MI) * _MI
    most = min(free, default=wanted * SHARE) // SHARE
    enough = min(wanted, most // _MI * _MI)
    if any(cell.does.array for cell in benchmark.cells):
        return max(enough, min(size, ARRAY, max(_MI, most // _MI * _MI)))
    return max(size, enough)


def title_of(benchmark: Benchmark, size: int, machine: Machine, profile: str | None) -> str:
    """The title. Sweep sizes that fit in the caches do not measure memory, and their titles say
    so."""
    caches = min((node.last_level_cache or 0 for node in machine.host.nodes), default=0)
    swept = benchmark.size is None and profile is not None
    cached = benchmark.backend == "host" and swept and size < caches
    return f"{benchmark.title}, of the caches" if cached else benchmark.title

"""How far apart a virtual machine's CPUs are at the moment.

A host may run two virtual CPUs on cores that share a cache or on cores that do not, and may move
them at any time. What several threads move together depends on it, and so does what one thread
takes from another's cache, but nothing in the guest shows it except how long a cache line takes
from one to the other.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from itertools import pairwise

from linkgauge import _native
from linkgauge.machine.environment import hypervisor
from linkgauge.machine.tree import ROOT, Root

PAIRS = 7
"""The first CPU and so many others, evenly spread."""
_LOOPS, _LAPS = 200, 3
"""Round trips of a lap, and laps of which the shortest counts: a thread may be interrupted."""


class Nearness:
    """Measures it between these CPUs; between none on hardware, whose cores stay where they are."""

    def __init__(self, cpus: Sequence[int], root: Root = ROOT) -> None:
        self._pairs = pairs_of(cpus) if hypervisor(root)[0] is not None else ()

    @classmethod
    def here(cls) -> Nearness:
        """Between the CPUs on which this process may run."""
        return cls(sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else ())

    def measure(self) -> tuple[float, ...]:
        """Seconds one way between the CPUs of each pair; takes about 0.3 ms a pair. Empty
        where there are no pairs, or where a thread cannot run on one of them."""
        with suppress(OSError):
            return tuple(_one_way(first, second) for first, second in self._pairs)
        return ()


def pairs_of(cpus: Sequence[int]) -> tuple[tuple[int, int], ...]:
    """The first with each of the others, or with `PAIRS` of them that are evenly spread."""
    first, others = cpus[:1], cpus[1:]
    count = min(PAIRS, len(others))
    spread = [others[(at + 1) * len(others) // count - 1] for at in range(count)]
    return tuple((first[0], other) for other in spread)


def _one_way(first: int, second: int) -> float:
    times, _, _ = _native.ping_pong(first, second, _LOOPS, _LAPS)
    laps = [end - begin for begin, end in pairwise(times)]
    return float(min(laps)) / (2 * _LOOPS)

"""Measures other processes' CPU load, and which CPUs of a virtual machine are near each other.

The load is measured over at least `SPAN` seconds, so that the kernel's clock ticks (10 ms) do not
matter; with a short repetition, the measurement begins earlier. Reading all processes takes
milliseconds, so it is done only when other processes are busy, never while a sample is timed."""

from __future__ import annotations

import math
import os
import time
from collections import deque
from collections.abc import Mapping, Sequence
from contextlib import suppress
from itertools import pairwise
from typing import NamedTuple

from msgspec.structs import replace

from linkgauge import _native
from linkgauge.machine.cpu_time import CpuTime, ProcessTime, cpu_time, family_time, process_times
from linkgauge.machine.environment import hypervisor
from linkgauge.machine.tree import ROOT, Root
from linkgauge.model.counters import Load

# How far apart a virtual machine's CPUs are at the moment.
#
# A host may run two virtual CPUs on cores that share a cache or on cores that do not, and may move
# them at any time. What several threads move together depends on it, and so does what one thread
# takes from another's cache, but nothing in the guest shows it except how long a cache line takes
# from one to the other.

PAIRS = 7
"""The number of CPUs, evenly spread, that are paired with the first one."""
_LOOPS, _BATCHES = 200, 3
"""The round trips of a batch, and the number of batches. The shortest batch counts, because a
thread may be interrupted."""


HOLDS = 2.0
"""The seconds for which a measurement stays valid: longer than most repetitions."""


class Nearness:
    """Measures how near CPUs of a virtual machine are. On a physical machine, measures nothing."""

    def __init__(self, cpus: Sequence[int], root: Root = ROOT) -> None:
        self._pairs = pairs_of(cpus) if hypervisor(root)[0] is not None else ()
        self._last = (-math.inf, tuple[float, ...]())
        """The time and the result of the last measurement."""

    @classmethod
    def here(cls) -> Nearness:
        return cls(sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else ())

    def measure(self) -> tuple[float, ...]:
        """Returns the one-way time of a message in seconds for each pair of CPUs, measured at most
        `HOLDS` seconds ago. Takes about 0.3 ms per pair, and 40 ms if processes share the CPUs.
        Returns no times if there are no pairs, or if a thread cannot run on one of the CPUs."""
        now = time.monotonic()
        if now - self._last[0] >= HOLDS:
            found = tuple[float, ...]()
            with suppress(OSError):
                found = tuple(_one_way(first, second) for first, second in self._pairs)
            self._last = now, found
        return self._last[1]


def pairs_of(cpus: Sequence[int]) -> tuple[tuple[int, int], ...]:
    """Pairs the first CPU with all others, or with `PAIRS` evenly spaced ones if there are more."""
    first, others = cpus[:1], cpus[1:]
    count = min(PAIRS, len(others))
    spread = [others[(at + 1) * len(others) // count - 1] for at in range(count)]
    return tuple((first[0], other) for other in spread)


def _one_way(first: int, second: int) -> float:
    times, _, _ = _native.ping_pong(first, second, _LOOPS, _BATCHES)
    batches = [end - begin for begin, end in pairwise(times)]
    return float(min(batches)) / (2 * _LOOPS)


SPAN = 0.5
"""The least seconds of a span over which load is measured."""
NAMED = 0.1
"""The busiest process is looked for if other processes keep at least this many CPUs busy."""
_MOST_KEPT = 64


class _At(NamedTuple):
    moment: float
    all: CpuTime
    own: float


class BackgroundLoad:
    """Measures the CPU time of processes outside the run. The run's processes are this process, its
    parent, and the parent's other children."""

    def __init__(self) -> None:
        self._nearness = Nearness.here()
        self._past: deque[_At] = deque(maxlen=_MOST_KEPT)
        self._processes: Mapping[int, ProcessTime] = {}
        self._read = -SPAN
        self._busiest: tuple[str, int] | None = None

    def begin(self) -> None:
        if (now := self._now()) is not None:
            self._past.append(now)
            if not self._processes:
                self._processes, self._read = process_times(), now.moment

    def end(self, by_cpus: bool) -> Load | None:
        """Returns the load during the repetition or, if it was short, over a longer time; None if
        the kernel reports none. If `by_cpus` is true, adds the times of messages between CPUs."""
        now = self._now()
        if now is None or not self._past:
            return None
        began = self._past[-1].moment
        old = [one for one in self._past if one.moment <= min(began, now.moment - SPAN)]
        first = old[-1] if old else self._past[0]
        seconds = now.moment - first.moment
        if seconds <= 0:
            return None
        busy = now.all.busy - first.all.busy - (now.own - first.own)
        stolen = max(0.0, now.all.stolen - first.all.stolen)
        distances = self._nearness.measure() if by_cpus else ()
        load = Load(seconds, max(0.0, busy), stolen, cpu_distances=distances)
        if load.others / seconds < NAMED:
            return load
        name, pid = self._find(now.moment) or (None, None)
        return replace(load, process=name, pid=pid)

    def _now(self) -> _At | None:
        every = cpu_time()
        if every is None:
            return None
        return _At(time.monotonic(), every, family_time(os.getppid()))

    def _find(self, moment: float) -> tuple[str, int] | None:
        if moment - self._read < SPAN:
            return self._busiest
        before, now = self._processes, process_times()
        self._processes, self._read = now, moment
        parent = os.getppid()
        used = {
            pid: one.seconds - (before[pid].seconds if pid in before else 0.0)
            for pid, one in now.items()
            if pid not in (parent, os.getpid()) and one.parent != parent
        }
        busiest = max(used, key=lambda pid: used[pid], default=None)
        self._busiest = None
        if busiest is not None and used[busiest] > 0:
            self._busiest = now[busiest].name, busiest
        return self._busiest

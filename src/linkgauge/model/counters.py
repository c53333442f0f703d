"""Counts events of host threads during the timed samples, and the load of other processes."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from statistics import fmean
from typing import Annotated

import msgspec
from msgspec.structs import replace

from linkgauge.model.grouped import grouped
from linkgauge.model.joining import added, first_known, in_series, joined, joined_known
from linkgauge.model.shareable import ProcessName, Reason


class ThreadSteps(msgspec.Struct, frozen=True, gc=False):
    """What the thread that ran on one CPU did during the timed samples.

    cpu: The CPU's number.
    steps: How many steps of the cell's operation the thread did.
    seconds: Seconds that these steps took.
    involuntary: How often the thread was switched out although it could have continued to run."""

    cpu: int
    steps: Annotated[int, added]
    seconds: Annotated[float, added]
    involuntary: Annotated[int, added] = 0


def _by_cpu(values: Sequence[Sequence[ThreadSteps]]) -> tuple[ThreadSteps, ...]:
    found = grouped((thread.cpu, thread) for thread in in_series(values))
    return tuple(joined(found[cpu]) for cpu in sorted(found))


class Fairness(msgspec.Struct, frozen=True, gc=False):
    """How unequal the threads' speeds are.

    mean: Mean of the threads' steps per second.
    stddev: Standard deviation of the threads' steps per second (of the population, as in sysbench).
    variation: The coefficient of variation: `stddev` ÷ `mean`."""

    mean: float
    stddev: float
    variation: float


class Counters(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """Events of all threads during all timed samples. A field is null if its event was not counted.

    seconds: The timed seconds of all threads, added up.
    page_faults: Page faults.
    context_switches: Context switches.
    involuntary: Context switches away from a thread that could have continued to run.
    migrations: Moves of a thread to another CPU.
    cycles: Cycles of the CPUs, in user mode.
    instructions: Instructions, in user mode.
    cache_misses: Misses of the last-level cache, in user mode.
    tlb_misses: Misses of the data TLB on reads, in user mode.
    refused: Why the CPU's events could not be counted; null if they were counted.
    steal: Seconds in which the hypervisor ran something else on the CPUs that the threads used.
    threads: The steps of each thread, for operations that each thread carries out alone.
    fairness: How unequal the threads' speeds are; null for fewer than two threads."""

    seconds: Annotated[float, added] = 0.0
    page_faults: Annotated[int | None, added] = None
    context_switches: Annotated[int | None, added] = None
    involuntary: Annotated[int | None, added] = None
    migrations: Annotated[int | None, added] = None
    cycles: Annotated[int | None, added] = None
    instructions: Annotated[int | None, added] = None
    cache_misses: Annotated[int | None, added] = None
    tlb_misses: Annotated[int | None, added] = None
    refused: Annotated[Reason | None, first_known] = None
    steal: Annotated[float | None, added] = None
    threads: Annotated[tuple[ThreadSteps, ...], _by_cpu] = ()
    fairness: Fairness | None = None


def total(counters: Iterable[Counters | None]) -> Counters | None:
    """Adds up the counters that are not None. An event that one lacks is None in the sum."""
    found = joined_known(counters)
    return found and replace(found, fairness=fairness(found.threads))


def fairness(threads: Iterable[ThreadSteps]) -> Fairness | None:
    rates = [thread.steps / thread.seconds for thread in threads if thread.seconds > 0]
    mean = sum(rates) / len(rates) if rates else 0.0
    if len(rates) < 2 or not mean:
        return None
    stddev = math.sqrt(sum((rate - mean) ** 2 for rate in rates) / len(rates))
    return Fairness(mean, stddev, stddev / mean)


# The load that other programs put on a machine.

AT_WORK = 0.05
"""A device that works for more than this share of the time is in use."""


class Load(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """The load of other processes during a time. Files leave out 0, null and empty values.

    seconds: Length of the time in seconds.
    others: CPU time in seconds, on all CPUs together, that processes outside the run used.
    stolen: CPU time in seconds, on all CPUs together, that a hypervisor took.
    process: The name of the busiest other process; null if no other process is visible.
    pid: The id of the busiest other process; null if there is none.
    cpu_distances: Mean seconds of a cache line's way from a VM's first CPU to several others."""

    seconds: float
    others: float = 0.0
    stolen: float = 0.0
    process: ProcessName | None = None
    pid: int | None = None
    cpu_distances: tuple[float, ...] = ()

    @property
    def cpus(self) -> float:
        """The mean number of CPUs that other processes and the hypervisor kept busy."""
        return (self.others + self.stolen) / self.seconds if self.seconds > 0 else 0.0


def joined_loads(loads: Iterable[Load | None]) -> Load | None:
    """Adds up loads and finds the busiest process; None without loads, or if one is None."""
    known = list(loads)
    if not known:
        return None
    busy: defaultdict[tuple[str | None, int | None], float] = defaultdict(float)
    seconds = others = stolen = 0.0
    for load in known:
        if load is None:
            return None
        seconds, others, stolen = (
            seconds + load.seconds, others + load.others, stolen + load.stolen
        )  # fmt: skip
        if load.process is not None:
            busy[load.process, load.pid] += load.others
    process, pid = max(busy, key=lambda one: busy[one], default=(None, None))
    return Load(seconds, others, stolen, process, pid, _mean_distances(known))


def _mean_distances(loads: Sequence[Load | None]) -> tuple[float, ...]:
    known = [load.cpu_distances for load in loads if load is not None and load.cpu_distances]
    return tuple(map(fmean, zip(*known, strict=True))) if known else ()

"""Counts events of host threads during the timed samples. The kernel and the CPU count the events.
The steps of each thread are counted only if each thread works alone."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import TypeVar

import msgspec

from linkgauge.model.shareable import Reason

_N = TypeVar("_N", int, float)


class ThreadSteps(msgspec.Struct, frozen=True, gc=False):
    """What the thread that ran on one CPU did during the timed samples.

    cpu: The CPU's number.
    steps: Steps of the cell's operation that the thread did.
    seconds: Seconds that these steps took.
    involuntary: How often the thread was switched out although it could have continued to run."""

    cpu: int
    steps: int
    seconds: float
    involuntary: int = 0


class Fairness(msgspec.Struct, frozen=True, gc=False):
    """How unequal the threads' speeds are.

    mean: Mean of the threads' steps per second.
    stddev: Standard deviation of the threads' steps per second (of the population, as in sysbench).
    variation: The coefficient of variation: `stddev` ÷ `mean`."""

    mean: float
    stddev: float
    variation: float


class Counters(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """Event counts, summed over all threads and the timed parts of all samples. Null means that an
    event was not counted. Cycles, instructions and misses are counted in user mode only.

    seconds: Seconds of all threads together.
    page_faults: Page faults.
    context_switches: Context switches.
    involuntary: Context switches away from a thread that could have continued to run.
    migrations: Moves of a thread to another CPU.
    cycles: Cycles of the CPUs.
    instructions: Instructions.
    cache_misses: Misses of the last-level cache.
    tlb_misses: Misses of the data TLB, on reads.
    refused: Why the CPU's own events were not counted; null if the events were counted.
    steal: Seconds in which the hypervisor ran something else on the CPUs that the threads used.
    threads: The steps of each thread, for operations that each thread carries out alone.
    fairness: How unequal the threads' speeds are; null for fewer than two threads."""

    seconds: float = 0.0
    page_faults: int | None = None
    context_switches: int | None = None
    involuntary: int | None = None
    migrations: int | None = None
    cycles: int | None = None
    instructions: int | None = None
    cache_misses: int | None = None
    tlb_misses: int | None = None
    refused: Reason | None = None
    steal: float | None = None
    threads: tuple[ThreadSteps, ...] = ()
    fairness: Fairness | None = None


_SUMMED = (
    "page_faults",
    "context_switches",
    "involuntary",
    "migrations",
    "cycles",
    "instructions",
    "cache_misses",
    "tlb_misses",
    "steal",
)


def total(counters: Iterable[Counters | None]) -> Counters | None:
    """Returns the sum of several counters, or None if all are None. An event that is missing from
    any of the counters is null in the sum."""
    counted = [one for one in counters if one is not None]
    if not counted:
        return None
    threads = _threads(counted)
    return Counters(
        seconds=sum(one.seconds for one in counted),
        **{name: _sum([getattr(one, name) for one in counted]) for name in _SUMMED},
        refused=next((one.refused for one in counted if one.refused), None),
        threads=threads,
        fairness=fairness(threads),
    )


_DIGITS = 6
"""The digits after the point: steal is in hundredths of a second."""


def _sum(values: Iterable[_N | None]) -> _N | None:
    total: _N | None = None
    for value in values:
        if value is None:
            return None
        total = value if total is None else total + value
    return round(total, _DIGITS) if isinstance(total, float) else total


def _threads(counted: Iterable[Counters]) -> tuple[ThreadSteps, ...]:
    """Returns the threads' work added up by CPU, in the order of CPUs."""
    found: dict[int, ThreadSteps] = {}
    for thread in (thread for one in counted for thread in one.threads):
        known = found.get(thread.cpu)
        found[thread.cpu] = thread if known is None else _joined(known, thread)
    return tuple(found[cpu] for cpu in sorted(found))


def _joined(one: ThreadSteps, other: ThreadSteps) -> ThreadSteps:
    return ThreadSteps(
        one.cpu,
        one.steps + other.steps,
        one.seconds + other.seconds,
        one.involuntary + other.involuntary,
    )


def fairness(threads: Iterable[ThreadSteps]) -> Fairness | None:
    """Returns how unequal the threads' speeds are. Returns None for fewer than two threads, or if
    no steps were done."""
    rates = [thread.steps / thread.seconds for thread in threads if thread.seconds > 0]
    mean = sum(rates) / len(rates) if rates else 0.0
    if len(rates) < 2 or not mean:
        return None
    stddev = math.sqrt(sum((rate - mean) ** 2 for rate in rates) / len(rates))
    return Fairness(mean, stddev, stddev / mean)

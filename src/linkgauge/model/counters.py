"""Counters of threads during the timed samples: events that the kernel and the CPU count and, for
operations that each thread carries out alone, each thread's steps."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import TypeVar

import msgspec

_N = TypeVar("_N", int, float)


class ThreadSteps(msgspec.Struct, frozen=True, gc=False):
    """The work of the thread on one CPU.

    cpu: The CPU's number.
    steps: Steps of the cell's operation.
    seconds: Seconds that they took.
    involuntary: How often it was switched out although it could have run on."""

    cpu: int
    steps: int
    seconds: float
    involuntary: int = 0


class Fairness(msgspec.Struct, frozen=True, gc=False):
    """The spread of the threads' speeds.

    mean: Mean of their steps per second.
    stddev: Their standard deviation (of the population, as sysbench has it).
    variation: The coefficient of variation, which is the ratio of both."""

    mean: float
    stddev: float
    variation: float


class Counters(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """Sums over the timed parts of all samples and all threads; null if not counted. Cycles,
    instructions and misses are counted in user mode.

    seconds: Seconds of all threads together.
    page_faults: Page faults.
    context_switches: Context switches.
    involuntary: Context switches away from a thread that could have run on.
    migrations: Moves of a thread to another CPU.
    cycles: Cycles of the CPUs.
    instructions: Instructions.
    cache_misses: Misses of the last-level cache.
    tlb_misses: Misses of the data TLB, on reads.
    refused: Why the CPU's own events were not counted; null if they were.
    steal: Seconds in which the hypervisor ran something else on the CPUs used.
    threads: What each thread did, of operations that each carries out by itself.
    fairness: How alike these threads did; null of fewer than two."""

    seconds: float = 0.0
    page_faults: int | None = None
    context_switches: int | None = None
    involuntary: int | None = None
    migrations: int | None = None
    cycles: int | None = None
    instructions: int | None = None
    cache_misses: int | None = None
    tlb_misses: int | None = None
    refused: str | None = None
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
    """The sum of the counters of several samples or visits; None if none was counted. A counter
    that one of them lacks is null in the sum."""
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
    """The threads merged by CPU, in the order of CPUs."""
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
    """The spread of the threads' speeds; None for fewer than two threads, or if no steps were
    done."""
    rates = [thread.steps / thread.seconds for thread in threads if thread.seconds > 0]
    mean = sum(rates) / len(rates) if rates else 0.0
    if len(rates) < 2 or not mean:
        return None
    stddev = math.sqrt(sum((rate - mean) ** 2 for rate in rates) / len(rates))
    return Fairness(mean, stddev, stddev / mean)

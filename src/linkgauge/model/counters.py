"""Events of host threads during the timed samples, as the kernel and the CPU count them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Annotated

import msgspec
from msgspec.structs import replace

from linkgauge.model.grouped import grouped
from linkgauge.model.joining import added, first_known, in_series, joined, joined_known
from linkgauge.model.shareable import Reason


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
    """Returns the sum of the known counters. An event that one of them lacks is null in the sum."""
    found = joined_known(counters)
    return found and replace(found, fairness=fairness(found.threads))


def fairness(threads: Iterable[ThreadSteps]) -> Fairness | None:
    rates = [thread.steps / thread.seconds for thread in threads if thread.seconds > 0]
    mean = sum(rates) / len(rates) if rates else 0.0
    if len(rates) < 2 or not mean:
        return None
    stddev = math.sqrt(sum((rate - mean) ** 2 for rate in rates) / len(rates))
    return Fairness(mean, stddev, stddev / mean)

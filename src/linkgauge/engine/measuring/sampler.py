"""Takes the samples of a repetition: warms up, chooses loops and samples, computes figures."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from statistics import median

import msgspec
from msgspec.structs import replace

from linkgauge.backends.protocol import MOST_BATCHES, Group, SamplingPolicy, Timing
from linkgauge.model.documents.result import Definition
from linkgauge.model.settings import REPETITION_SECONDS, Settings
from linkgauge.model.stats.summary import robust_deviation
from linkgauge.model.transfer import Cell, Report

# The rates of concurrent transfers in one sample, by the cell's report.
#
# Bytes over the span from the first start to the last end depend on how long the slowest transfer
# runs alone, and on how many loops a fixed delay is spread over; the bytes that move within the
# window in which all run, over that window, depend on neither.

BATCHES_TOGETHER = 3
"""Batches of the slowest copy that must fit into the time in which all run."""
STANDSTILL = 2.0
"""A batch longer than the copy's other batches by this factor means that the copy stands still."""
LEAST_OVERLAP = 0.1
"""Copies run one after another if they overlap for less than this fraction of the shortest copy."""

BatchTimes = Sequence[Sequence[float]]
"""For each copy, its start and the end of each of its batches, in seconds of one clock."""


def sustained(progress: BatchTimes, amounts: Sequence[float]) -> tuple[float, ...] | None:
    """Returns each copy's rate while all copies run, in amounts per second. `amounts` has the
    amount that each copy moves in all batches. Returns None if the copies hardly overlap, or if one
    of them stands still while all run."""
    if not progress:
        return None
    begin, end = max(own[0] for own in progress), min(own[-1] for own in progress)
    shortest = min(own[-1] - own[0] for own in progress)
    if end <= begin or end - begin < LEAST_OVERLAP * shortest:
        return None
    if any(_stands_still(own, begin, end) for own in progress):
        return None
    return tuple(
        amount / (len(own) - 1) * (_batches_within(own, begin, end) / (end - begin))
        for own, amount in zip(progress, amounts, strict=True)
    )


def _batches_within(times: Sequence[float], begin: float, end: float) -> float:
    return sum(
        1.0  # also of a batch that is too short for the clock
        if begin <= started and ended <= end
        else max(0.0, min(ended, end) - max(started, begin)) / (ended - started)
        for started, ended in pairwise(times)
    )


def _stands_still(times: Sequence[float], begin: float, end: float) -> bool:
    """Whether no batch of a copy is within the window, and a very long batch overlaps it."""
    batches = list(pairwise(times))
    if any(begin <= batch[0] and batch[1] <= end for batch in batches):
        return False
    crossing = [batch[1] - batch[0] for batch in batches if batch[0] < end and batch[1] > begin]
    others = [batch[1] - batch[0] for batch in batches if batch[0] >= end or batch[1] <= begin]
    return bool(others) and max(crossing) > STANDSTILL * median(others)


def marks_of(loops: int) -> int:
    return next(
        batches for batches in range(min(loops, MOST_BATCHES), 0, -1) if loops % batches == 0
    )


def marked_loops(loops: int, spread: float) -> int:
    """Returns a number of loops, at least `loops`, that is a multiple of the number of batches, and
    with which the slowest copy completes several batches while the fastest copy runs. `spread` is
    the slowest copy's time divided by the fastest copy's time."""
    wanted = max(loops, math.ceil(BATCHES_TOGETHER * spread))
    return wanted if wanted <= MOST_BATCHES else math.ceil(wanted / MOST_BATCHES) * MOST_BATCHES


def rates(moved: Sequence[int], timing: Timing, definition: Definition | None) -> tuple[float, ...]:
    """Returns each transfer's rate in one sample, in bytes/s. `moved` has its bytes in all loops. A
    "sustained" rate is that while all transfers run; others are over each transfer's time."""
    if definition == "sustained":  # over the whole span if transfers hardly overlap
        return sustained(timing.progress, moved) or tuple(own / timing.span for own in moved)
    return tuple(own / each for own, each in zip(moved, timing.seconds, strict=True))


def headline(
    cell: Cell, counted: Sequence[int], timing: Timing, loops: int, definition: Definition | None
) -> float:
    """Returns the bandwidth of a sample in bytes/s. `counted` has each transfer's bytes in one loop
    (`Cell.counted`). `definition` says how a total is computed (`definition_of`)."""
    moved = [each * loops for each in counted]
    if definition in ("serial", "span"):
        return sum(moved) / timing.span
    each = rates(moved, timing, definition)
    return each[0] if cell.report.is_first else sum(each)


def definition_of(cell: Cell, timings: Iterable[Timing]) -> Definition | None:
    """Returns how a cell's total is computed in all samples; None if it reports no total."""
    if not cell.report.is_total:
        return None
    if cell.report is Report.SPAN:
        return "span"
    equivalent = [1] * len(cell.transfers)
    together = all(sustained(timing.progress, equivalent) is not None for timing in timings)
    return "sustained" if together else "serial"


WARM_UPS = 2
"""The single copies before the number of loops is chosen. The first pays for page tables and
caches, which is negligible if it lasts as long as a sample. (Where samples are rehearsed it does
not count: there it connects ranks, which takes longer than many samples.)"""

REPETITION_SHARE = 0.05
"""A repetition's samples take REPETITION_SECONDS, or this share of the cell's time if that is
longer."""
LEAST_SAMPLES = 2
STEADY_SECONDS = 0.02
"""The seconds that the samples of a repetition take instead if they are steady."""
WARM_SECONDS = 1.0
"""Steady samples longer than this are warmed up at each repetition, to show how long a loop takes
now: deadlines rest on it."""
LEVEL_WITHIN, QUARTERS, REST_SECONDS = 1.0, 4, 0.1
"""The seconds after which samples count although their quarters lie at different levels, and the
seconds of rest before them, so that the power cap acts alike in each repetition."""


class Sample(msgspec.Struct, frozen=True):
    """How a repetition takes samples. `loops` is the number of loops in a sample. `seconds` is a
    sample's expected duration. Up to `batches` samples follow one start signal."""

    loops: int
    seconds: float = 0.0
    batches: int = 1
    policy: SamplingPolicy = SamplingPolicy()


class TakenSamples(msgspec.Struct, frozen=True):
    """A repetition's samples. `gates` has the number of samples after each start signal. `seconds`
    is the time of all samples. `cpu_seconds` is this process's CPU time (None if unknown)."""

    loops: int
    timings: tuple[Timing, ...]
    gates: tuple[int, ...]
    seconds: float
    cpu_seconds: float | None = None


def run_once(group: Group, loops: int) -> Timing:
    group.arm(loops)
    group.open()
    return group.wait()


def run_batches(group: Group, loops: int, batches: int) -> list[Timing]:
    """Takes several samples after one start signal. Only the first copy is timed batch by batch.
    The time of each other copy is divided evenly."""
    if batches == 1:
        return [run_once(group, loops)]
    group.arm(loops, batches)
    group.open()
    whole = group.wait()
    others = tuple(seconds / batches for seconds in whole.seconds[1:])
    each = [end - begin for begin, end in pairwise(whole.progress[0])]
    timings = [Timing((seconds, *others), seconds, whole.checksums) for seconds in each]
    timings[-1] = replace(timings[-1], counters=whole.counters)  # those of all batches
    return timings


SampleSeconds = Callable[[Timing], float]
"""A function that returns the seconds of the shortest copy, because no copy's figure should rest on
too short a sample."""


def warm_up(
    group: Group,
    settings: Settings,
    policy: SamplingPolicy,
    busy: SampleSeconds = lambda timing: min(timing.seconds),
    known: Sample | None = None,
) -> Sample:
    """Warms up, and returns how to take samples: as in an earlier repetition (`known`), or else
    with as many loops as `settings` or `policy` ask for."""
    if known is not None:
        if not known.policy.steady or known.seconds > WARM_SECONDS:
            run_once(group, 1)
        return known
    # Half as long a run of steady copies predicts as well.
    enough = policy.seconds / 2 if policy.steady else policy.seconds
    for _ in range(WARM_UPS):
        timing = run_once(group, 1)
        if busy(timing) >= enough and not policy.rehearsed:
            break
    if settings.loops is not None:
        return Sample(settings.loops, busy(timing) * settings.loops, 1, policy)
    loops = 1
    # A single short copy predicts many poorly: measure a longer run before extrapolating.
    while busy(timing) < enough / 4 and loops < group.most_loops:
        loops = min(loops * 8, group.most_loops)
        timing = run_once(group, loops)
    each = max(busy(timing) / loops, 1e-12)
    needed = math.ceil(policy.seconds / each)
    if policy.sustained:
        needed = marked_loops(needed, max(timing.seconds) / max(busy(timing), 1e-12))
    needed = max(min(needed, group.most_loops), policy.loops)
    batches = max(1, min(policy.batches, group.most_loops // needed))
    return Sample(needed, needed * each, batches, policy)


def samples_a_repetition(sample: Sample, settings: Settings) -> int:
    """Returns the number of samples in a repetition."""
    if settings.samples is not None:
        return settings.samples
    # In a soak, each repetition takes all of the cell's time.
    share = REPETITION_SHARE if settings.soak is None else 1.0
    repetition = max(
        STEADY_SECONDS if sample.policy.steady else REPETITION_SECONDS, settings.max_time * share
    )
    each = max(sample.seconds, 1e-9)
    if sample.policy.steady:
        return max(1, min(sample.policy.most, round(repetition / each)))
    # A quarter of the cell's time leaves enough for other repetitions.
    least = LEAST_SAMPLES if LEAST_SAMPLES * each <= settings.max_time / 4 else 1
    return max(least, min(sample.policy.most, math.ceil(repetition / each)))


def is_level(times: Sequence[float], precision: float) -> bool:
    """Whether the medians of four parts of the samples agree within the precision or the noise."""
    size = len(times) // QUARTERS
    quarters = [times[end - size : end] for end in range(len(times), QUARTERS - 1, -size)]
    middles = [median(own) for own in quarters]
    noise = robust_deviation(
        [abs(one / of - 1) for own, of in zip(quarters, middles, strict=True) for one in own]
    )
    return max(middles) <= min(middles) * (1 + max(2 * precision, 3 * noise))


def take_samples(
    group: Group,
    sample: Sample,
    settings: Settings,
    clock: Callable[[], float] = time.monotonic,
    sampled: Callable[[], None] = lambda: None,
    spent: float = 0.0,
    cpu_clock: Callable[[], float] | None = None,
) -> TakenSamples:
    """Takes at least one sample. If `settings.samples` is None, no sample begins after the cell's
    time, of which earlier repetitions used `spent` seconds. `sampled` is called after the samples
    of each start signal. `cpu_clock` returns this process's CPU time."""
    wanted = samples_a_repetition(sample, settings)
    policy = sample.policy
    if policy.rehearsed and settings.loops is not None and sample.seconds < policy.seconds:
        run_once(group, sample.loops)
    if policy.level:
        time.sleep(REST_SECONDS)
    timings: list[Timing] = []
    gates: list[int] = []
    began_cpu = cpu_clock() if cpu_clock else 0.0
    begin = clock()
    elapsed = used = 0.0
    left = settings.max_time - spent
    least = max(wanted, policy.level)
    while len(timings) < least or (
        policy.level
        and elapsed < LEVEL_WITHIN
        and not is_level([one.seconds[0] for one in timings[-least:]], settings.precision)
    ):
        if settings.samples is None and timings and elapsed >= left:
            break
        batches = sample.batches if policy.level else min(sample.batches, wanted - len(timings))
        if settings.samples is None:
            batches = max(1, min(batches, int((left - elapsed) / max(sample.seconds, 1e-9))))
        timings.extend(run_batches(group, sample.loops, batches))
        gates.append(batches)
        elapsed = clock() - begin
        used = cpu_clock() - began_cpu if cpu_clock else 0.0
        sampled()
    del timings[:-wanted]
    while (extra := sum(gates) - wanted) > 0:
        gates[:1] = [gates[0] - extra] if gates[0] > extra else []
    # Rounded to a nanosecond, so that the result does not depend on the clocks' absolute values.
    cpu_seconds = round(used, 9) if cpu_clock else None
    return TakenSamples(sample.loops, tuple(timings), tuple(gates), round(elapsed, 9), cpu_seconds)

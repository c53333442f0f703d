"""Takes the samples of a visit to one prepared group: warm-up, loops a sample, how many."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from itertools import pairwise

import msgspec

from linkgauge.backends.protocol import Group, Pace, Timing
from linkgauge.model.result import Settings

from .sustained import marked_loops

WARM_UPS = 2
"""Single copies before the loops are chosen: the first pays for page tables and caches, which does
not count where it lasts as long as a sample."""

VISIT_SECONDS = 0.03
VISIT_SHARE = 0.05
"""Seconds of samples that a visit takes: so many, or this share of the time of the cell."""
LEAST_SAMPLES = 2
MOST_SAMPLES = 32
"""Of a visit: with one alone, a visit costs more than it measures; beyond so many, they know its
median better, but not how visits vary."""


class Sample(msgspec.Struct, frozen=True):
    """What a sample is: so many loops, which take about so many seconds. Up to `laps` of them
    follow each other behind one gate."""

    loops: int
    seconds: float = 0.0
    laps: int = 1


class TakenSamples(msgspec.Struct, frozen=True):
    """Timings of each sample of `loops` loops, how many stood behind each gate, and the seconds
    that all of it took."""

    loops: int
    timings: tuple[Timing, ...]
    gates: tuple[int, ...]
    seconds: float


def run_once(group: Group, loops: int) -> Timing:
    """One sample: everything waits behind the gate, then runs."""
    group.arm(loops)
    group.open()
    return group.wait()


def run_laps(group: Group, loops: int, laps: int) -> Iterator[Timing]:
    """So many samples behind one gate. What accompanies the first copy is timed as a whole: of each
    lap it has taken its share."""
    if laps == 1:
        yield run_once(group, loops)
        return
    group.arm(loops, laps)
    group.open()
    whole = group.wait()
    others = tuple(seconds / laps for seconds in whole.seconds[1:])
    for begin, end in pairwise(whole.progress[0]):
        yield Timing((end - begin, *others), end - begin, whole.checksums)


SampleSeconds = Callable[[Timing], float]
"""Seconds of the shortest copy: no copy's figure is to rest on too short a sample."""


def warm_up(
    group: Group,
    settings: Settings,
    pace: Pace,
    busy: SampleSeconds = lambda timing: min(timing.seconds),
    known: Sample | None = None,
) -> Sample:
    """Warms up and returns what a sample is to be: what is `known` of an earlier visit, the loops
    asked for, else as the pace wants."""
    for _ in range(WARM_UPS):
        timing = run_once(group, 1)
        if busy(timing) >= pace.seconds or known is not None:
            break
    if known is not None:
        return known
    if settings.loops is not None:
        return Sample(settings.loops, busy(timing) * settings.loops)
    loops = 1
    # A single short copy says little about many: measure a longer run before extrapolating.
    while busy(timing) < pace.seconds / 4 and loops < group.most_loops:
        loops = min(loops * 8, group.most_loops)
        timing = run_once(group, loops)
    each = max(busy(timing) / loops, 1e-12)
    needed = math.ceil(pace.seconds / each)
    if pace.sustained:
        needed = marked_loops(needed, max(timing.seconds) / max(busy(timing), 1e-12))
    needed = max(min(needed, group.most_loops), pace.loops)
    laps = max(1, min(pace.laps, group.most_loops // needed))
    return Sample(needed, needed * each, laps)


def samples_a_visit(sample: Sample, settings: Settings) -> int:
    """How many samples a visit takes: all of them where their number is fixed."""
    if settings.samples is not None:
        return settings.samples
    visit = max(VISIT_SECONDS, settings.max_time * VISIT_SHARE)
    each = max(sample.seconds, 1e-9)
    # A quarter of the cell's time leaves enough for other visits.
    least = LEAST_SAMPLES if LEAST_SAMPLES * each <= settings.max_time / 4 else 1
    return max(least, min(MOST_SAMPLES, math.ceil(visit / each)))


def take_samples(
    group: Group,
    sample: Sample,
    settings: Settings,
    clock: Callable[[], float] = time.monotonic,
    sampled: Callable[[], None] = lambda: None,
    spent: float = 0.0,
) -> TakenSamples:
    """The samples of a visit, or as many as begin within the time of the cell, of which so much is
    `spent`; at least one. `sampled` hears of each gate's end."""
    wanted = samples_a_visit(sample, settings)
    timings: list[Timing] = []
    gates: list[int] = []
    begin = clock()
    elapsed = 0.0
    left = settings.max_time - spent
    while len(timings) < wanted:
        if settings.samples is None and timings and elapsed >= left:
            break
        laps = min(sample.laps, wanted - len(timings))
        if settings.samples is None:
            laps = max(1, min(laps, int((left - elapsed) / max(sample.seconds, 1e-9))))
        timings.extend(run_laps(group, sample.loops, laps))
        gates.append(laps)
        elapsed = clock() - begin
        sampled()
    # To the nanosecond: where a clock stands must not show in what it tells.
    return TakenSamples(sample.loops, tuple(timings), tuple(gates), round(elapsed, 9))

"""Takes samples of one prepared group: warm-up, loops a sample, and when to stop."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise

import msgspec

from linkgauge.backends.base import Group, Pace, Timing
from linkgauge.model.result import Settings, Stopped
from linkgauge.model.statistics import (
    LEAST_SAMPLES,
    expected_error,
    is_look,
    next_look,
    relative_error,
)

from .sustained import marked_loops

WARM_UPS = 2
"""Single copies before the loops are chosen: the first pays for page tables and caches, which does
not count where it lasts as long as a sample."""

Figures = Callable[[Timing, int], Sequence[float]]
"""The headline figures of one sample of so many loops, one a cell, in the result's unit."""

HOPELESS = 1.25
"""Sampling ends early where the precision would take more than so many times the time allowed."""
LEAST_TO_JUDGE = 21
"""Samples from which it can be foreseen how many the precision takes."""


class Sample(msgspec.Struct, frozen=True):
    """What a sample is: so many loops, which take about so many seconds. Up to `laps` of them
    follow each other behind one gate."""

    loops: int
    seconds: float = 0.0
    laps: int = 1


class Samples(msgspec.Struct, frozen=True):
    """Timings of each sample of `loops` loops, and why there are no more of them."""

    loops: int
    stopped: Stopped
    timings: tuple[Timing, ...]


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


Busy = Callable[[Timing], float]
"""Seconds of the shortest copy: no copy's figure is to rest on too short a sample."""


def shortest(timing: Timing) -> float:
    return min(timing.seconds)


def warm_up(group: Group, settings: Settings, pace: Pace, busy: Busy = shortest) -> Sample:
    """Warms up and returns what a sample is to be: the loops asked for, else as the pace wants."""
    for _ in range(WARM_UPS):
        timing = run_once(group, 1)
        if busy(timing) >= pace.seconds:
            break
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


def take_samples(
    group: Group,
    sample: Sample,
    settings: Settings,
    figures: Figures,
    clock: Callable[[], float] = time.monotonic,
) -> Samples:
    """Samples until the interval of every cell's median is narrow enough, the count is reached or
    the time is spent. Intervals are looked at only at 6, 9, 14, 21 … samples."""
    timings: list[Timing] = []
    taken: list[Sequence[float]] = []
    begin = clock()
    stopped: Stopped | None = None
    while stopped is None:
        laps = 1
        if sample.laps > 1:
            laps = _laps(sample, taken, settings, settings.max_time - (clock() - begin))
        for timing in run_laps(group, sample.loops, laps):
            timings.append(timing)
            taken.append(figures(timing, sample.loops))
        stopped = _stop(taken, settings, clock() - begin)
    return Samples(sample.loops, stopped, tuple(timings))


def _laps(sample: Sample, taken: Sequence[Sequence[float]], settings: Settings, left: float) -> int:
    """How many samples the next gate is to hold: no more than the precision takes, as far as can
    be foreseen, and than fit into the seconds left."""
    count = len(taken)
    if settings.samples is not None:
        wanted = settings.samples
    else:
        error = _worst(taken)
        short = 1.0 if error is None or settings.precision == 0 else error / settings.precision
        # An interval narrows with the root of the number of samples.
        wanted = next_look(max(count + 1, math.ceil(count * short**2)))
    return max(1, min(wanted - count, sample.laps, int(left / sample.seconds)))


def _worst(taken: Sequence[Sequence[float]]) -> float | None:
    """The widest interval of any cell's median, relative to it; None where there is none."""
    if len(taken) < LEAST_SAMPLES:
        return None
    errors = [relative_error(cell) for cell in zip(*taken, strict=True)]
    known = [error for error in errors if error is not None]
    return max(known) if len(known) == len(errors) else None


def _stop(taken: Sequence[Sequence[float]], settings: Settings, elapsed: float) -> Stopped | None:
    """Why to stop after these samples, each with a figure a cell; None to go on."""
    count = len(taken)
    if settings.samples is not None:
        return "samples" if count >= settings.samples else None
    if settings.precision > 0 and is_look(count):
        error = _worst(taken)
        if error is not None and error <= settings.precision:
            return "precision"
        likely = min(error or 0, max(map(expected_error, zip(*taken, strict=True))))
        needed = elapsed * (likely / settings.precision) ** 2
        if count >= LEAST_TO_JUDGE and needed > HOPELESS * settings.max_time:
            return "max-time"
    return "max-time" if elapsed >= settings.max_time else None

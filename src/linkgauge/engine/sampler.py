"""Takes samples of one prepared group: warm-up, loops a sample, and when to stop."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence

import msgspec

from linkgauge.backends.base import Group, Timing
from linkgauge.model.result import Settings, Stopped
from linkgauge.model.statistics import is_look, relative_error

SAMPLE_SECONDS = 0.02
"""A sample lasts at least this long, so that clock resolution and start-up do not count."""
LEAST_LOOPS = 2
WARM_UPS = 2
"""Single copies before the loops are chosen: the first pays for page tables and caches."""

Figures = Callable[[Timing, int], Sequence[float]]
"""The headline figures of one sample of so many loops, one a cell, in the result's unit."""

HOPELESS = 2.0
"""Sampling ends early where the precision would take more than so many times the time allowed."""
LEAST_TO_JUDGE = 14
"""Samples from which it can be foreseen how many the precision takes."""


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


Busy = Callable[[Timing], float]
"""Seconds of the shortest copy: no copy's figure is to rest on too short a sample."""


def shortest(timing: Timing) -> float:
    return min(timing.seconds)


def warm_up(
    group: Group, settings: Settings, least: int = LEAST_LOOPS, busy: Busy = shortest
) -> int:
    """Warms up and returns the loops a sample: as asked, else at least `least` and ≥ 20 ms."""
    for _ in range(WARM_UPS):
        timing = run_once(group, 1)
    if settings.loops is not None:
        return settings.loops
    loops = 1
    seconds = busy(timing)
    # A single short copy says little about many: measure a longer run before extrapolating.
    while seconds < SAMPLE_SECONDS / 4 and loops < group.most_loops:
        loops = min(loops * 8, group.most_loops)
        seconds = busy(run_once(group, loops))
    needed = math.ceil(SAMPLE_SECONDS * loops / max(seconds, 1e-9))
    return max(min(needed, group.most_loops), least)


def take_samples(
    group: Group,
    loops: int,
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
        timing = run_once(group, loops)
        timings.append(timing)
        taken.append(figures(timing, loops))
        stopped = _stop(taken, settings, clock() - begin)
    return Samples(loops, stopped, tuple(timings))


def _stop(taken: Sequence[Sequence[float]], settings: Settings, elapsed: float) -> Stopped | None:
    """Why to stop after these samples, each with a figure a cell; None to go on."""
    count = len(taken)
    if settings.samples is not None:
        return "samples" if count >= settings.samples else None
    if settings.precision > 0 and is_look(count):
        errors = [relative_error(cell) for cell in zip(*taken, strict=True)]
        known = [error for error in errors if error is not None]
        if len(known) == len(errors) and max(known) <= settings.precision:
            return "precision"
        # An interval narrows with the root of the number of samples.
        needed = elapsed * (max(known, default=0) / settings.precision) ** 2
        if count >= LEAST_TO_JUDGE and needed > HOPELESS * settings.max_time:
            return "max-time"
    return "max-time" if elapsed >= settings.max_time else None

"""Takes samples of one prepared group: warm-up, loops a sample, and when to stop."""

from __future__ import annotations

import math
import time
from collections.abc import Callable

import msgspec

from linkgauge.backends.base import Group, Timing
from linkgauge.model.result import Settings, Stopped
from linkgauge.model.statistics import is_look, relative_error

SAMPLE_SECONDS = 0.02
"""A sample lasts at least this long, so that clock resolution and start-up do not count."""
LEAST_LOOPS = 2
WARM_UPS = 2
"""Single copies before the loops are chosen: the first pays for page tables and caches."""

Figure = Callable[[Timing, int], float]
"""The headline figure of one sample of so many loops, in the result's unit."""


class Samples(msgspec.Struct, frozen=True):
    """Timings of each sample of `loops` loops, and why there are no more of them."""

    loops: int
    stopped: Stopped
    timings: tuple[Timing, ...]
    error: float | None
    """Relative half width of the 95 % interval of the median; None below 6 samples."""


def run_once(group: Group, loops: int) -> Timing:
    """One sample: everything waits behind the gate, then runs."""
    group.arm(loops)
    group.open()
    return group.wait()


def warm_up(group: Group, settings: Settings, least: int = LEAST_LOOPS) -> int:
    """Warms up and returns the loops a sample: as asked, else at least `least` and ≥ 20 ms."""
    for _ in range(WARM_UPS):
        timing = run_once(group, 1)
    if settings.loops is not None:
        return settings.loops
    loops = 1
    seconds = _busy(timing)
    # A single short copy says little about many: measure a longer run before extrapolating.
    while seconds < SAMPLE_SECONDS / 4 and loops < group.most_loops:
        loops = min(loops * 8, group.most_loops)
        seconds = _busy(run_once(group, loops))
    needed = math.ceil(SAMPLE_SECONDS * loops / max(seconds, 1e-9))
    return max(min(needed, group.most_loops), least)


def _busy(timing: Timing) -> float:
    """Seconds of the first copy, which all reports include."""
    return timing.seconds[0]


def take_samples(
    group: Group,
    loops: int,
    settings: Settings,
    figure: Figure,
    clock: Callable[[], float] = time.monotonic,
) -> Samples:
    """Samples until the interval of the median is narrow enough, the count is reached or the
    time is spent. The interval is tested only at 6, 9, 14, 21 … samples."""
    timings: list[Timing] = []
    figures: list[float] = []
    deadline = clock() + settings.max_time
    stopped: Stopped | None = None
    while stopped is None:
        timing = run_once(group, loops)
        timings.append(timing)
        figures.append(figure(timing, loops))
        stopped = _stop(figures, settings, clock() >= deadline)
    return Samples(loops, stopped, tuple(timings), relative_error(figures))


def _stop(figures: list[float], settings: Settings, late: bool) -> Stopped | None:
    if settings.samples is not None:
        return "samples" if len(figures) >= settings.samples else None
    if is_look(len(figures)):
        error = relative_error(figures)
        if error is not None and error <= settings.precision:
            return "precision"
    return "max-time" if late else None

"""Computes the range in which another run's figure should lie (docs/intervals.md). It uses mean
absolute deviations of repetitions (R. Geary, Biometrika 27, 1935)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache
from statistics import fmean, median

import msgspec

from ..recorded import RecordedKind
from .moments import LEAST, Spread
from .student import critical
from .summary import percentile, robust_deviation

Repetitions = Sequence[Sequence[float]]
"""The samples of a cell, repetition by repetition. No repetition is empty."""
COVERAGE = 0.95
_UNLIKE, _NOISY = 3.0, 0.75
"""A cell whose typical repetition is off by this many times the third quartile of similar cells is
unlike them. For factors from 2 to 5, ranges hold as many figures of recorded runs."""
_MEAN_ABSOLUTE = math.sqrt(math.pi / 2)
"""The standard deviation of normal values, by their mean absolute deviation."""
_MOST = math.log(10) / 2
"""The half-width, in logarithms, from which a range says nothing: its ends are tenfold apart."""
_SHARED = 3.0
"""A new process changes at most this many times what a new repetition does where other users of the
host take part, and once that where devices are alone (docs/intervals.md)."""
_EFFICIENCY = 1 / (math.pi - 2)
"""The part of the degrees of freedom that the mean absolute deviation uses, of normal values."""
_MEDIAN = math.pi / 2
"""The variance of a normal sample's median for many samples, as a multiple of the variance of its
mean."""


class Estimate(msgspec.Struct, frozen=True):
    """A figure's range: `reach` is its half-width in logarithms, `pooled` counts the cells used."""

    reach: float
    degrees: int
    pooled: int

    def interval(self, *figures: float) -> tuple[float, float] | None:
        """Returns the range around the figures; None if its ends are tenfold apart or more."""
        if self.reach >= _MOST:
            return None
        return min(figures) * math.exp(-self.reach), max(figures) * math.exp(self.reach)


def estimates(
    cells: Sequence[Repetitions], recorded: RecordedKind | None = None, runs: float | None = None
) -> list[Estimate | None]:
    """Returns an estimate for each of several similar cells: None for a cell without samples or
    with a figure that is not positive; None for all cells if no cell has several repetitions."""
    medians_of = cache(_medians)  # equal cells of a simulated machine have the same samples
    known = [medians_of(tuple(map(tuple, cell))) for cell in cells]
    every = [own for own in known if len(own) > 1]
    if not every:
        return [None] * len(cells)
    repeated = {own: _spread([own]) for own in dict.fromkeys(every)}
    # A single repetition that is far off is the tail of what all similar cells show, and of two
    # repetitions, either may be.
    limit = _UNLIKE * percentile(sorted([repeated[own].deviation for own in every]), _NOISY)
    unlike = {own for own in repeated if len(own) > 2 and _typical(own) > limit}
    like = [own for own in every if own not in unlike]
    pool = _spread(like)
    found: dict[Sequence[float], Estimate | None] = {(): None}
    for own in set(known) - {()}:
        spread, pooled = (repeated[own], 1) if own in unlike else (pool, len(like))
        # However quiet similar cells are, a range is not below what the cell's own repetitions
        # show to be the standard error of the difference of two runs.
        least = repeated[own].deviation if own in repeated else 0.0
        reach = max(_reach(spread, len(own), recorded, runs), least * _of_two(len(own)))
        found[own] = Estimate(reach, int(spread.degrees), pooled)
    return [found[own] for own in known]


def _reach(spread: Spread, count: int, recorded: RecordedKind | None, runs: float | None) -> float:
    error, widest = spread.deviation * _of_two(count), math.inf
    if recorded is not None:
        # Of earlier runs, what they vary by beyond their repetitions.
        process = 2 * recorded.process**2 if runs is None else 2 * runs**2 - error**2
        most = 2 * ((1 if recorded.alone else _SHARED) * max(spread.deviation, LEAST)) ** 2
        error = math.sqrt(error**2 + min(max(0.0, process), most))
        if recorded.alone:
            widest = max(critical(1 - COVERAGE, math.inf) * error, -math.log1p(-recorded.furthest))
    degrees = max(1.0, _EFFICIENCY * spread.degrees)
    return min(critical(1 - COVERAGE, degrees) * error, widest)


def _of_two(count: int) -> float:
    variance = 1 / count  # of the median of normal values of variance 1, within 1 %
    if count > 2:
        variance = _MEDIAN / (count + (_MEDIAN - 1 if count % 2 else 1.25))
    return math.sqrt(2 * variance)


def _typical(cell: Sequence[float]) -> float:
    middle = median(cell)
    return robust_deviation(abs(one - middle) for one in cell)


def _spread(cells: Sequence[Sequence[float]]) -> Spread:
    degrees = sum(map(len, cells)) - len(cells)
    pooled = sum(deviation_of(own) * (len(own) - 1) for own in cells) / degrees
    return Spread(pooled * pooled, degrees)


def _medians(cell: Repetitions) -> tuple[float, ...]:
    if not cell or min(map(min, cell)) <= 0:
        return ()
    return tuple(map(math.log, map(median, cell)))


def may_lead(share: float, repetitions: int) -> bool:
    """Whether a group with this share of the samples may have most repetitions of another run."""
    n = repetitions
    ways = (math.comb(n, k) * share**k * (1 - share) ** (n - k) for k in range(n // 2 + 1, n + 1))
    return sum(ways) > (1 - COVERAGE) / 2


def deviation_of(values: Sequence[float]) -> float:
    """Estimates the standard deviation of two or more values from the mean absolute deviation."""
    mean, count = fmean(values), len(values)
    deviation = fmean(abs(one - mean) for one in values)
    return _MEAN_ABSOLUTE * deviation * math.sqrt(count / (count - 1))

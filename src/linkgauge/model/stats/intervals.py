"""Computes the range into which the figure of another run falls.

A cell is measured in repetitions. Each has its own buffers, start signals and moment, like another
run. A repetition counts as one value, the logarithm of the median of its samples: samples taken
back to back share buffers and moment, and say nothing of another run.

The model: log figure = level + process + the median of k repetitions. The variance of repetitions
is pooled over similar cells, because a cell has few. What only a new process, new buffers of it or
another day changes is the same in all repetitions of a run, so that no run can show it; it is given
(`recorded`). Two runs differ by twice the variance of one. Student's t accounts for the few
repetitions. docs/variation.md derives this, and has the evidence.

Repetitions have heavy tails. The pooled deviation is therefore a mean of absolute deviations (R.
Geary, Biometrika 27, 1935), and a cell that varies much more than similar ones counts by itself."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache
from statistics import fmean, median

import msgspec

from .student import critical
from .summary import percentile

Repetitions = Sequence[Sequence[float]]
"""The samples of a cell, repetition by repetition. No repetition is empty."""
COVERAGE = 0.95
_UNLIKE, _NOISY = 2.0, 0.75
"""A cell that varies this many times as much as the third quartile of similar cells is unlike them.
From 1.5 to 3, and for the median, ranges hold about as many figures of recorded runs."""
_MEAN_ABSOLUTE = math.sqrt(math.pi / 2)
"""The standard deviation of normal values, by their mean absolute deviation."""
_MEDIAN = math.pi / 2
"""The variance of a normal sample's median for many samples, as a multiple of the variance of its
mean."""


class Estimate(msgspec.Struct, frozen=True):
    """How far another run's figure may be from this one's. `reach` is the half-width of the range,
    in logarithms. The variance has `degrees` degrees of freedom and comes from `alike` cells."""

    reach: float
    degrees: int
    alike: int

    def interval(self, *figures: float) -> tuple[float, float]:
        """Returns the range about a figure, or about all levels between which it may change."""
        return min(figures) * math.exp(-self.reach), max(figures) * math.exp(self.reach)


def estimates(cells: Sequence[Repetitions], process: float = 0.0) -> list[Estimate | None]:
    """Returns the estimate for each of several similar cells. An estimate is None if a figure of
    the cell is not positive. All are None if no cell has two repetitions. `process` is the relative
    standard deviation of what only a new process changes."""
    medians_of = cache(_medians)  # equal cells of a simulated machine have the same samples
    known = [medians_of(tuple(map(tuple, cell))) for cell in cells]
    deviations = [deviation_of(own) if len(own) > 1 else None for own in known]
    pool = _pooled(
        [(one, len(own) - 1) for one, own in zip(deviations, known, strict=True) if one is not None]
    )
    if pool is None:
        return [None] * len(cells)
    return [
        _estimate(len(own), one, pool, process) if own else None
        for one, own in zip(deviations, known, strict=True)
    ]


class _Pool(msgspec.Struct, frozen=True):
    """The deviation of similar cells. A cell beyond `limit` is unlike them."""

    deviation: float
    limit: float
    degrees: int
    alike: int


def _pooled(cells: Sequence[tuple[float, int]]) -> _Pool | None:
    """Returns the pooled deviation of cells, given by deviation and degrees of freedom. One that
    varies much more than the others makes it no larger than it would at the limit."""
    if not cells:
        return None
    limit = _UNLIKE * percentile(sorted(one for one, _ in cells), _NOISY)
    degrees = sum(count for _, count in cells)
    deviation = sum(min(one, limit) * count for one, count in cells) / degrees
    like = [count for one, count in cells if one <= limit]
    return _Pool(deviation, limit, sum(like), len(like))


def _estimate(count: int, own: float | None, pool: _Pool, process: float) -> Estimate:
    is_unlike = own is not None and own > pool.limit
    deviation, degrees = (own, count - 1) if is_unlike and own else (pool.deviation, pool.degrees)
    error = math.hypot(deviation * math.sqrt(median_factor(count)), process)
    reach = critical(1 - COVERAGE, degrees) * math.sqrt(2) * error
    return Estimate(reach, degrees, 1 if is_unlike else pool.alike)


def _medians(cell: Repetitions) -> tuple[float, ...]:
    """Returns the logarithms of the medians of repetitions; none if a sample is not positive."""
    if not cell or min(map(min, cell)) <= 0:
        return ()
    return tuple(math.log(median(samples)) for samples in cell)


def deviation_of(values: Sequence[float]) -> float:
    """Returns the standard deviation of two or more values, by their mean absolute deviation."""
    mean, count = fmean(values), len(values)
    apart = fmean(abs(one - mean) for one in values)
    return _MEAN_ABSOLUTE * apart * math.sqrt(count / (count - 1))


def median_factor(count: int) -> float:
    """Returns the variance of the median of `count` normal values of variance 1, within 1 % of the
    exact value. For an even count the median is the mean of the middle two values."""
    if count <= 2:
        return 1 / count
    return _MEDIAN / (count + (_MEDIAN - 1 if count % 2 else 1.25))

"""Intervals that another run's median falls into, and the difference between two sets of runs.

A cell is measured in visits: each has buffers, gates and a moment of its own, as another run has.
What a run reports varies with all of these, so the visits, not the samples, are what an interval
is made of: samples taken back to back share their buffers and their moment, and their scatter
alone covered 79 % of what it should.

All variances are of logarithms, so they are relative. The variance between the visits of cells
that are alike is pooled: each cell has few visits, and Student's t is narrow only where many of
them tell the variance (a pooled variance: G. Snedecor, W. Cochran, Statistical Methods, 8th ed.,
6.9 and 12.3). Only with those that an F test does not tell from its own, so that a quiet device
beside a noisy one is not taken for a noisy one.
"""

from __future__ import annotations

import math
import statistics
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from itertools import accumulate

import msgspec

from .statistics import deviation

Samples = Sequence[Sequence[float]]
"""The samples of a cell, visit by visit; none is empty."""
COVERAGE = 0.95
_T = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228)
_Z = 1.959964
_F = (math.inf, 99.0, 9.28, 6.39, 5.05, 4.28, 3.79, 3.44, 3.18, 2.98)
"""Quantiles of F with 1, 2 … degrees of freedom each: 95 % from 3 on, 99 % of 2; of 1, whose
variance may be anything by chance, none."""
_SAME = 1 + 1e-9
"""Rounding keeps no cell out of its own pool."""
_MEDIAN = math.pi / 2
"""Variance of a normal sample's median, as a multiple of that of its mean, for many samples."""


class Estimate(msgspec.Struct, frozen=True):
    """A cell's headline figure as a logarithm: its variance over runs, known by so many degrees of
    freedom, from the visits of so many alike cells."""

    log: float
    variance: float
    degrees: int
    alike: int

    def interval(self) -> tuple[float, float]:
        """What another run's median falls into with `COVERAGE`, in the samples' unit."""
        half = student(self.degrees) * math.sqrt(self.variance)
        return math.exp(self.log - half), math.exp(self.log + half)


class Difference(msgspec.Struct, frozen=True):
    """The ratio of two figures, and its interval: they differ where 1 is not within."""

    ratio: float
    low: float
    high: float

    @property
    def is_proven(self) -> bool:
        return not self.low <= 1 <= self.high


def student(degrees: int) -> float:
    """The 97.5 % quantile of Student's t. Beyond the table, Cornish and Fisher's expansion
    (Abramowitz and Stegun, 26.7.5), which is exact to four digits there."""
    if degrees <= len(_T):
        return _T[degrees - 1]
    z, n = _Z, degrees
    first = (z**3 + z) / (4 * n)
    return z + first + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * n * n)


def estimates(cells: Sequence[Samples]) -> list[Estimate | None]:
    """Of cells that are alike, each with its visits; None where no variance is known: no cell has
    two visits, or a figure is not above 0."""
    logs = [_logs(cell) for cell in cells]
    spread = [_between(own) for own in logs]
    pools = _Pools([each for each in spread if each is not None])
    found: list[Estimate | None] = []
    for samples, own, each in zip(cells, logs, spread, strict=True):
        between, degrees, alike = pools.of(each)
        if own is None or not degrees:
            found.append(None)
            continue
        variance = _of_headline(between, _within(samples), len(own))
        found.append(Estimate(statistics.median(_flat(samples)), variance, degrees, alike))
    return found


class _Pools:
    """Variances with their degrees of freedom, and which of them are alike."""

    def __init__(self, spread: Sequence[tuple[float, int]]) -> None:
        ordered = sorted(spread)
        self._variances = [variance for variance, _ in ordered]
        self._sums = [0.0, *accumulate(variance * freedom for variance, freedom in ordered)]
        self._degrees = [0, *accumulate(freedom for _, freedom in ordered)]

    def of(self, own: tuple[float, int] | None) -> tuple[float, int, int]:
        """The variance pooled with all that are alike, or with all where a cell has none of its
        own; its degrees of freedom; and how many cells that are."""
        low, high = 0, len(self._variances)
        if own is not None:
            variance, freedom = own
            most = _F[min(freedom, len(_F)) - 1] * _SAME
            if most < math.inf:
                low = bisect_left(self._variances, variance / most)
                high = bisect_right(self._variances, variance * most)
        degrees = self._degrees[high] - self._degrees[low]
        total = self._sums[high] - self._sums[low]
        return (max(0.0, total / degrees) if degrees else 0.0), degrees, high - low


def difference(first: Samples, second: Samples) -> Difference | None:
    """second ÷ first with its 95 % interval, by Welch's approximation: their variances need not be
    equal. None where one of them has too few visits to tell."""
    (one,), (other,) = estimates([first]), estimates([second])
    if one is None or other is None:
        return None
    variance = one.variance + other.variance
    parts = one.variance**2 / one.degrees + other.variance**2 / other.degrees
    degrees = max(1, int(variance**2 / parts)) if parts > 0 else one.degrees + other.degrees
    log, half = other.log - one.log, student(degrees) * math.sqrt(variance)
    return Difference(math.exp(log), math.exp(log - half), math.exp(log + half))


def _flat(samples: Samples) -> list[float]:
    return [math.log(sample) for visit in samples for sample in visit]


def _logs(samples: Samples) -> list[float] | None:
    """The logarithm of each visit's median."""
    if not samples or any(sample <= 0 for visit in samples for sample in visit):
        return None
    return [math.log(statistics.median(visit)) for visit in samples]


def _between(logs: Sequence[float] | None) -> tuple[float, int] | None:
    """Variance of the visits' medians, and its degrees of freedom."""
    if logs is None or len(logs) < 2:
        return None
    return deviation(logs) ** 2, len(logs) - 1


def _pool(spread: Sequence[tuple[float, int]]) -> tuple[float, int]:
    degrees = sum(freedom for _, freedom in spread)
    total = sum(variance * freedom for variance, freedom in spread)
    return (total / degrees, degrees) if degrees else (0.0, 0)


def _within(samples: Samples) -> float:
    """What the scatter of samples alone makes the variance of a visit's median."""
    spread = [
        (deviation([math.log(sample) for sample in visit]) ** 2 * _median_factor(len(visit)),
         len(visit) - 1)
        for visit in samples
        if len(visit) > 1
    ]  # fmt: skip
    return _pool(spread)[0]


def _of_headline(between: float, within: float, visits: int) -> float:
    """Variance of the median of all samples. What varies from visit to visit counts as in a median
    of visits; what varies from sample to sample averages out over all of them."""
    within = min(within, between)
    return _median_factor(visits) * (between - within) + within / visits


def _median_factor(count: int) -> float:
    """Variance of the median of so many normal values, of which each has the variance 1. Within
    1 % of the exact ones; of an even number it is the mean of the middle two."""
    if count <= 2:
        return 1 / count
    return _MEDIAN / (count + (_MEDIAN - 1 if count % 2 else 1.25))

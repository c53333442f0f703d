"""Intervals that another run's median falls into, and the difference between two sets of runs.

A cell is measured in visits: each has buffers, gates and a moment of its own, as another run has.
What a run reports varies with all of these, so the visits, not the samples, are what an interval
is made of: samples taken back to back share their buffers and their moment, and their scatter
alone covered 79 % of what it should.

All variances are of logarithms, so they are relative. The variance between the visits of cells
that are alike is pooled: each cell has few visits, and Student's t is narrow only where many of
them tell the variance (a pooled variance: G. Snedecor, W. Cochran, Statistical Methods, 8th ed.,
6.9 and 12.3). A cell whose visits have more than ten times the variance of the others', which
chance does to one of a hundred (F test with 2 and 6 degrees of freedom or more), has its own.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence

import msgspec

from .statistics import deviation

Samples = Sequence[Sequence[float]]
"""The samples of a cell, visit by visit; none is empty."""
COVERAGE = 0.95
_T = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228)
_Z = 1.959964
_STANDS_OUT = 10.0
_LEAST_OTHERS = 6
"""Degrees of freedom of the others from which that can be said."""
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
    known = [each for each in spread if each is not None]
    total = _pool(known)
    apart = {each for each in known if _stands_out(each, *total)}
    together = [each for each in known if each not in apart]
    pooled, degrees = _pool(together)
    found: list[Estimate | None] = []
    for samples, own, each in zip(cells, logs, spread, strict=True):
        alone = each is not None and each in apart
        between, freedom = each if each is not None and alone else (pooled, degrees)
        if own is None or not freedom:
            found.append(None)
            continue
        variance = _of_headline(between, _within(samples), len(own))
        alike = 1 if alone else len(together)
        found.append(Estimate(statistics.median(_flat(samples)), variance, freedom, alike))
    return found


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


def _stands_out(own: tuple[float, int], pooled: float, degrees: int) -> bool:
    """Whether the visits of a cell scatter more than those of the others by more than chance."""
    variance, freedom = own
    others = degrees - freedom
    if others < _LEAST_OTHERS:
        return False
    return variance * others > _STANDS_OUT * (pooled * degrees - variance * freedom)


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

"""Computes a summary of samples, and the distribution-free interval of the median."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Literal

import msgspec

from ..units import Better

LEAST_SAMPLES = 6
"""The fewest samples for which a 95 % interval of the median exists: 1 - 2 × 2^-6 = 96.9 %."""


class Summary(msgspec.Struct, frozen=True, gc=False):
    """The statistics of samples, in the result's unit. Percentiles are Hyndman and Fan's type 7.

    n: The number of samples.
    min: The least sample.
    median: The headline: the median of all samples or, if they form two groups, of the larger one.
    mean: The mean.
    max: The largest sample.
    p50: The median of all samples.
    p95: The 95th percentile of all samples (for a bandwidth, the fast side).
    p99: The 99th percentile of all samples.
    stddev: The standard deviation (n - 1); null for a single sample.
    ci95: The 95 % interval of the median, from low to high; null if unknown. See `interval`.
    slow_p95: 95 % of the samples are at least as good as this; null in files of older versions.
    slow_p99: 99 % of the samples are at least as good as this; null in files of older versions."""

    n: int
    min: float
    median: float
    mean: float
    max: float
    p50: float
    p95: float
    p99: float
    stddev: float | None
    ci95: tuple[float, float] | None
    slow_p95: float | None = None
    slow_p99: float | None = None


class Interval(msgspec.Struct, frozen=True, gc=False):
    """How `ci95` was computed from the variation between repetitions and between processes.

    basis: `repetitions`; in older files also `samples`, which says nothing about other runs.
    coverage: The share of other runs whose median falls into the interval.
    degrees: The degrees of freedom of the variation between repetitions.
    pooled: The number of cells that were pooled."""

    basis: Literal["repetitions", "samples"]
    coverage: float | None = None
    degrees: int | None = None
    pooled: int | None = None


def percentile(ordered: Sequence[float], fraction: float) -> float:
    """Returns a percentile of ascending values: type 7 of Hyndman and Fan (1996), as in numpy."""
    position = (len(ordered) - 1) * fraction
    low = math.floor(position)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (position - low)


def known_percentile(ordered: Sequence[float], fraction: float) -> float | None:
    """Returns a percentile, or None if no sample lies beyond it."""
    is_known = len(ordered) * (1 - fraction) >= 1 - 1e-9
    return percentile(ordered, fraction) if is_known else None


_DEVIATIONS = 10
"""The standard deviations below the mean beyond which floats cannot represent the probability."""


@lru_cache(maxsize=256)
def interval_rank(n: int) -> int | None:
    """Returns the largest k for which [x(k), x(n+1-k)] covers the median in 95 % of cases; None for
    too few samples (Conover, Practical Nonparametric Statistics, 3.2)."""
    if n < LEAST_SAMPLES:
        return None
    k = max(0, n // 2 - math.ceil(_DEVIATIONS * math.sqrt(n) / 2))
    logarithm = math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1)
    share = math.exp(logarithm - n * math.log(2))
    tail = share
    while tail <= 0.025:  # one side's
        share *= (n - k) / (k + 1)
        tail += share
        k += 1
    return k


def median_interval(ordered: Sequence[float]) -> tuple[float, float] | None:
    rank = interval_rank(len(ordered))
    return None if rank is None else (ordered[rank - 1], ordered[-rank])


def summarize(samples: Sequence[float], better: Better = "higher") -> Summary | None:
    if not samples:
        return None
    ordered = sorted(samples)
    median = statistics.median(ordered)
    mean = statistics.fmean(ordered)
    return Summary(
        n=len(ordered),
        min=ordered[0],
        median=median,
        mean=mean,
        max=ordered[-1],
        p50=median,
        p95=percentile(ordered, 0.95),
        p99=percentile(ordered, 0.99),
        stddev=deviation(ordered) if len(ordered) > 1 else None,
        ci95=median_interval(ordered),
        slow_p95=percentile(ordered, 0.95 if better == "lower" else 0.05),
        slow_p99=percentile(ordered, 0.99 if better == "lower" else 0.01),
    )


def deviation(samples: Sequence[float]) -> float:
    """Returns the standard deviation (n - 1), twenty times as fast as statistics.stdev."""
    mean = statistics.fmean(samples)
    return math.dist(samples, [mean] * len(samples)) / math.sqrt(len(samples) - 1)


def robust_deviation(distances: Iterable[float]) -> float:
    """Returns a standard deviation: 1.4826 × the median of distances (F. Hampel, JASA 69, 1974)."""
    return 1.4826 * statistics.median(distances)


def median_deviation(stddev: float, n: int) -> float:
    """Returns the standard deviation of the median of n samples: √(π/2) × the mean's deviation."""
    return math.sqrt(math.pi / 2 / n) * stddev


def relative_error(summary: Summary | None) -> float | None:
    """Returns the distance from the median to the farther end of its interval, as a ratio."""
    if summary is None or summary.ci95 is None or summary.median <= 0:
        return None
    low, high = summary.ci95
    return max(high - summary.median, summary.median - low) / summary.median

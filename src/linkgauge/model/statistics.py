"""Statistics of samples: a summary, and the distribution-free interval of the median."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from functools import lru_cache

import msgspec

LEAST_SAMPLES = 6
"""The fewest samples for which a 95 % interval of the median exists: 1 - 2 × 2^-6 = 96.9 %."""


class Summary(msgspec.Struct, frozen=True, gc=False):
    """Of `n` samples, in the unit of the result. `median` is the headline figure: where the samples
    fall into two groups, the larger one's (`p50` is that of all). `ci95` is its interval, null
    where there is none; the cell says how it was formed."""

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


def percentile(ordered: Sequence[float], fraction: float) -> float:
    """Linear between the closest ranks, as numpy's default does. `ordered` ascends."""
    position = (len(ordered) - 1) * fraction
    low = math.floor(position)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (position - low)


@lru_cache(maxsize=256)
def interval_rank(n: int) -> int | None:
    """The 1-based rank k for which [x(k), x(n+1-k)] covers the median with at least 95 %.

    The count of samples below the median is binomial(n, 1/2), whatever the distribution
    (Conover, Practical Nonparametric Statistics, 3.2). None where even k = 1 covers less.
    """
    if n < LEAST_SAMPLES:
        return None
    tail = rank = 0
    for k in range(n // 2):
        tail += math.comb(n, k)
        if tail * 40 > 1 << n:  # one side's 2.5 %, in whole numbers
            break
        rank = k + 1
    return rank


def median_interval(ordered: Sequence[float]) -> tuple[float, float] | None:
    """The 95 % confidence interval of the median, from order statistics."""
    rank = interval_rank(len(ordered))
    return None if rank is None else (ordered[rank - 1], ordered[-rank])


def summarize(samples: Sequence[float]) -> Summary | None:
    """None of no samples: absent is null, never 0."""
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
    )


def deviation(samples: Sequence[float]) -> float:
    """Standard deviation of a sample (n - 1) of two or more. statistics.stdev works in exact
    fractions and takes twenty times as long."""
    mean = statistics.fmean(samples)
    return math.hypot(*(sample - mean for sample in samples)) / math.sqrt(len(samples) - 1)


def median_deviation(stddev: float, n: int) -> float:
    """Standard deviation of the median of n normal samples: √(π/2) times that of their mean."""
    return math.sqrt(math.pi / 2 / n) * stddev


def relative_error(summary: Summary | None) -> float | None:
    """How far the farther end of the interval lies from the figure, relative to it."""
    if summary is None or summary.ci95 is None or summary.median <= 0:
        return None
    low, high = summary.ci95
    return max(high - summary.median, summary.median - low) / summary.median

"""Figures, their intervals, differences and samples, in few characters."""

from __future__ import annotations

import math
import statistics
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise

from linkgauge.model.units import percent, unit_of

_FLAT = 1.002
"""A course whose largest bar is no more than so many times the least has no valley."""


def digits(value: float) -> str:
    """Four digits, or all of those before the point."""
    if value >= 1000:
        return f"{value:.0f}"
    return f"{value:#.4g}" if value else "0"


def signed(ratio: float) -> str:
    """+4.0%, -12.3%, ×250."""
    return f"{100 * (ratio - 1):+.1f}%" if ratio < 100 else f"×{ratio:.3g}"


def with_reach(figure: float, low: float | None, high: float | None, unit: str) -> str:
    """`55.40 ±0.5%`: the wider half of the interval, if there is one."""
    text = digits(figure / unit_of(unit).scale)
    if low is None or high is None:
        return text
    return f"{text} ±{percent(max(high - figure, figure - low) / figure)}"


def course(figures: Sequence[float], most: int) -> str:
    """Figures in the order of time as at most so many bars between the least and the largest: of
    many, the median of some a bar."""
    count = min(most, len(figures))
    ends = [len(figures) * number // count for number in range(count + 1)] if count else []
    middles = [statistics.median(figures[begin:end]) for begin, end in pairwise(ends)]
    least, largest = min(middles, default=0.0), max(middles, default=0.0)
    if largest <= least * _FLAT:
        return BARS[len(BARS) // 2] * len(middles)
    steps = (int((middle - least) / (largest - least) * len(BARS)) for middle in middles)
    return "".join(BARS[min(step, len(BARS) - 1)] for step in steps)


BARS = "▁▂▃▄▅▆▇█"
BINS = 24


def histogram(samples: Sequence[float], bins: int = BINS) -> str:
    """How many samples lie in each of some intervals of equal ratio from the least to the largest:
    a bar each, relative to the most; none where there are none. All are positive."""
    least, most = min(samples), max(samples)
    width = math.log(most / least) / bins
    counts = Counter(
        min(bins - 1, int(math.log(sample / least) / width)) if width > 0 else 0
        for sample in samples
    )
    tallest = max(counts.values())
    bars = (-(-counts[at] * len(BARS) // tallest) for at in range(bins))
    return "".join(BARS[bar - 1] if bar else " " for bar in bars).rstrip()

"""Figures, their intervals and differences, in few digits."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from itertools import pairwise

from linkgauge.model.units import percent, unit_of

from .histogram import BARS

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

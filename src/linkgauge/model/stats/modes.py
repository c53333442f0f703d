"""Finds samples that fall into two separate groups, such as those of a fast and a slow path."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import TypeVar

import msgspec

_T = TypeVar("_T")
LEAST = 6
"""With fewer gates, two groups cannot be distinguished from chance."""
_SHARE = 10
"""The smaller group has at least one in this many of all values, and at least two values."""
_APART = 0.01
"""Medians that differ by less than this ratio count as the same."""
_NEEDED = {1: (3.0, 60.0), 2: (2.4, 56.0)}
"""The widths that gaps need, by the number of gaps, in standard deviations within the groups: the
greater of the first number and the second ÷ n. Fewer than 1 % of sets with one group have such gaps
(6 or more samples: normal, lognormal with σ to 1, drifting, or autocorrelated by 0.9). Two groups
ten deviations apart, 30 : 70, are found in 95 % of sets of 30 samples (docs/method-sampling.md)."""


class Mode(msgspec.Struct, frozen=True):
    """One of two groups of a cell's samples, such as the fast or the slow samples.

    median: The median of the group's samples, in the result's unit.
    gates: The number of gates (start signals) whose samples are mostly in the group.
    samples: The number of samples in the group."""

    median: float
    gates: int
    samples: int


def split(
    samples: Sequence[float], gates: Sequence[int], repetitions: Sequence[int] = ()
) -> float | None:
    """Returns the border between two groups of samples, or None if there is only one group. The
    samples of one gate (start signal) are alike, so only their median counts. If then
    each repetition lies in one group, the border is sought again among repetitions' medians."""
    border = _border(samples, gates)
    if border is None or len(repetitions) < 2:
        return border
    sides = [{sample > border for sample in repetition} for repetition in cut(samples, repetitions)]
    return border if any(len(side) > 1 for side in sides) else _border(samples, repetitions)


def _border(samples: Sequence[float], units: Sequence[int]) -> float | None:
    ordered = sorted(_medians(samples, units))
    if len(ordered) < LEAST or not 0 < ordered[0] * (1 + _APART) < ordered[-1]:
        return None
    for gaps in _NEEDED:  # of three groups, the widest gap separates two
        place = _widest(ordered, gaps)
        if place is not None and _widest([math.log(value) for value in ordered], gaps) is not None:
            low, high = statistics.median(ordered[:place]), statistics.median(ordered[place:])
            if high > (1 + _APART) * low:
                return (ordered[place - 1] + ordered[place]) / 2
    return None


def groups(samples: Sequence[float], gates: Sequence[int], border: float) -> tuple[Mode, Mode]:
    """Returns the groups below and above the border, the group with more gates first."""
    low, high = (_group(samples, gates, border, is_high) for is_high in (False, True))
    return (high, low) if (high.gates, high.samples) > (low.gates, low.samples) else (low, high)


def _group(samples: Sequence[float], gates: Sequence[int], border: float, is_high: bool) -> Mode:
    own = [sample for sample in samples if (sample > border) is is_high]
    count = sum((median > border) is is_high for median in _medians(samples, gates))
    return Mode(statistics.median(own), count, len(own))


def _medians(samples: Sequence[float], units: Sequence[int]) -> Iterator[float]:
    yield from map(statistics.median, cut(samples, units))


def cut(samples: Sequence[_T], units: Iterable[int]) -> Iterator[Sequence[_T]]:
    first = 0
    for count in units:
        yield samples[first : first + count]
        first += count


def _widest(values: Sequence[float], gaps: int) -> int | None:
    count = len(values)
    least = max(2, -(-count // _SHARE))
    if count < LEAST + 3 * (gaps - 1) or count < 2 * least + gaps - 1:
        return None
    widths = {at: values[at] - values[at - 1] for at in range(least, count - least + 1)}
    widest = sorted(widths, key=lambda at: -widths[at])[:gaps]
    edges = [0, *sorted(widest), count]
    squares = sum(_squares(values[a:b]) for a, b in pairwise(edges))
    within = math.sqrt(squares / (count - gaps - 1))
    needed = max(_NEEDED[gaps][0], _NEEDED[gaps][1] / count)
    return widest[0] if min(widths[at] for at in widest) > needed * within else None


def _squares(values: Sequence[float]) -> float:
    mean = statistics.fmean(values)
    return sum((value - mean) ** 2 for value in values)

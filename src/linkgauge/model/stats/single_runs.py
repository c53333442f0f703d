"""Estimates how much another run of a cell would vary, from a single run: from the cell's interval
and the intervals of alike cells.

A cell's interval is computed from a few visits of the cell and from the visits of cells that seem
alike. If the few visits of a noisy cell agree by chance, the cell looks quiet and gets the interval
of quiet cells. The interval contains 95 of 100 figures of other runs, but says nothing of values
farther out: a p of 1e-30 by the interval means little. On a device that jitters, some alike cells
of the same run are noisier. Each cell is then assumed to be one of the noisy cells with a small
probability.

Alike cells should not move between two runs. How far they did move shows whether intervals are too
narrow or too wide."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from statistics import fmean, median

import msgspec

from linkgauge.model.grouped import grouped

from .spread import Spread
from .summary import robust_deviation

_NOISIER = 9.0
"""A cell is much noisier than another if the ratio of their variances is above this."""
_UNSEEN = 0.25
"""The share of noisy cells that may look quiet. On a simulated device that jitters by 5 %, it was 2
of 14 cells, which end as soon as two visits agree within 1 %."""
_LEAST_TO_CENTRE, _LEAST_TO_SCALE = 3, 12
"""The fewest cells of a kind that have a middle of their own, and the fewest cells in total."""
_LEAST_TO_NARROW = 12
_EXPECTED = 3
"""`_LEAST_TO_NARROW` is the fewest other cells of a family that may make an interval narrower.
`_EXPECTED` is the number of cells that are added to a family, each moved by one standard error. A
few cells that agree by chance then make no interval narrow."""


class Single(msgspec.Struct, frozen=True):
    """The variance of a run's figure, from the run's interval. `kind` is equal for alike cells."""

    kind: Hashable
    spread: Spread


def doubted(cells: Sequence[Single | None]) -> list[Spread | None]:
    """Returns the variance of each cell of one run. If a cell has much noisier alike cells, their
    variance is its doubt, with the share of all cells that may be that noisy unnoticed."""
    kinds = grouped((cell.kind, cell.spread) for cell in cells if cell is not None)
    return [None if cell is None else _doubted(cell.spread, kinds[cell.kind]) for cell in cells]


def _doubted(own: Spread, kind: Sequence[Spread]) -> Spread:
    noisier = [one for one in kind if one.variance > _NOISIER * own.variance]
    if not noisier:
        return own
    wide = Spread(fmean(one.variance for one in noisier), median(one.degrees for one in noisier))
    return Spread(own.variance, own.degrees, wide, _UNSEEN * len(noisier) / len(kind))


class MovedCell(msgspec.Struct, frozen=True):
    """A cell whose figure moved by `errors` standard errors between two runs, by the runs'
    intervals. `kind` is equal for alike cells, and `family` for cells that depend on the same
    things."""

    kind: Hashable
    family: Hashable
    errors: float


def stretches(cells: Sequence[MovedCell]) -> list[float]:
    """Returns a factor for the error of each cell. The factor is above 1 if cells moved farther
    than their intervals suggest. It is below 1 if the other cells of a large family all moved less:
    medians of samples that stall now and then agree much better than visits do."""
    wide = _excess(cells)
    squares = grouped((cell.family, (cell.errors / wide) ** 2) for cell in cells)
    return [
        wide * min(1.0, _by_others(squares[cell.family], (cell.errors / wide) ** 2))
        for cell in cells
    ]


def _by_others(family: Sequence[float], own: float) -> float:
    """Returns the root mean square of a family without this cell, mixed with some values of 1.
    Returns 1 for a small family."""
    others = len(family) - 1
    if others < _LEAST_TO_NARROW:
        return 1.0
    return math.sqrt((sum(family) - own + _EXPECTED) / (others + _EXPECTED))


def _excess(cells: Sequence[MovedCell]) -> float:
    """Returns the factor, at least 1, by which cells moved farther than their intervals suggest.
    The factor is the median distance of cells, in standard errors, from the middle of the cells of
    the same kind. An effect on a few cells, or on all cells of a kind alike, hardly changes the
    median."""
    kinds = grouped((cell.kind, cell.errors) for cell in cells)
    apart = [
        abs(one - middle) * math.sqrt(len(own) / (len(own) - 1))
        for own in kinds.values()
        if len(own) >= _LEAST_TO_CENTRE
        for middle in (median(own),)
        for one in own
    ]
    return max(1.0, robust_deviation(apart)) if len(apart) >= _LEAST_TO_SCALE else 1.0

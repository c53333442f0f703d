"""Estimates how much another run of a cell would vary, from the intervals in a single run.

A cell's interval is computed from a few visits of the cell and from the visits of cells that seem
similar. If the few visits of a noisy cell agree by chance, the cell looks quiet and gets the
interval of quiet cells. The interval contains 95 of 100 figures of other runs, but says nothing of
values farther out: a p of 1e-30 by the interval means little. On a device that jitters, some
similar cells of the same run are noisier. Each cell is then assumed to be one of the noisy cells
with a small probability.

The figures of similar cells should not change between two runs. How far they did change shows
whether intervals are too narrow or too wide."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Hashable, Sequence
from functools import cache
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
    """The variance between runs that a cell's interval implies. `kind` is equal for similar
    cells."""

    kind: Hashable
    spread: Spread


def doubted(cells: Sequence[Single | None]) -> list[Spread | None]:
    """Returns the variance of each cell of one run. Where similar cells are much noisier, their
    variance is added as the cell's `doubt`."""
    pairs = grouped((cell.kind, cell.spread) for cell in cells if cell is not None)
    kinds = {kind: sorted(own, key=_variance) for kind, own in pairs.items()}

    @cache
    def noisier(kind: Hashable, at: int) -> tuple[Spread, float]:
        own, found = kinds[kind], kinds[kind][at:]
        wide = Spread(fmean(map(_variance, found)), median(one.degrees for one in found))
        return wide, _UNSEEN * len(found) / len(own)

    def of(cell: Single) -> Spread:
        own, kind = cell.spread, kinds[cell.kind]
        at = bisect_right(kind, _NOISIER * own.variance, key=_variance)
        if at == len(kind):
            return own
        return Spread(own.variance, own.degrees, *noisier(cell.kind, at))

    return [None if cell is None else of(cell) for cell in cells]


def _variance(one: Spread) -> float:
    return one.variance


class MovedCell(msgspec.Struct, frozen=True):
    """A cell whose figure changed between two runs. `errors` is the change in standard errors, by
    the runs' intervals. `kind` is equal for similar cells. `family` is equal for cells that depend
    on the same things."""

    kind: Hashable
    family: Hashable
    errors: float


def stretches(cells: Sequence[MovedCell]) -> list[float]:
    """Returns a factor for the error of each cell. It is above 1 if the cells moved farther than
    their intervals suggest. It is below 1 if the other cells of a large family moved less."""
    wide = _excess(cells)
    squares = grouped((cell.family, (cell.errors / wide) ** 2) for cell in cells)
    return [
        wide * min(1.0, _by_others(squares[cell.family], (cell.errors / wide) ** 2))
        for cell in cells
    ]


def _by_others(family: Sequence[float], own: float) -> float:
    """Returns the typical movement of the other cells in a family, as a factor of the expected
    movement. Returns 1 for a small family."""
    others = len(family) - 1
    if others < _LEAST_TO_NARROW:
        return 1.0
    return math.sqrt((sum(family) - own + _EXPECTED) / (others + _EXPECTED))


def _excess(cells: Sequence[MovedCell]) -> float:
    """Returns the factor, at least 1, by which cells moved farther than their intervals suggest. It
    is the median distance of cells from the middle of their kind, in standard errors. A change of a
    few cells, or of a whole kind, hardly affects it."""
    kinds = grouped((cell.kind, cell.errors) for cell in cells)
    apart = [
        abs(one - middle) * math.sqrt(len(own) / (len(own) - 1))
        for own in kinds.values()
        if len(own) >= _LEAST_TO_CENTRE
        for middle in (median(own),)
        for one in own
    ]
    return max(1.0, robust_deviation(apart)) if len(apart) >= _LEAST_TO_SCALE else 1.0

"""Estimates how much another run of a cell varies from single runs: from their own intervals and
from those of alike cells.

A cell's interval rests on a few visits of its own and on those of cells that seem alike. A noisy
cell whose few visits agree by chance passes for a quiet one, and its interval is that of quiet
cells. The interval holds 95 of 100 figures of other runs, but says nothing of values farther out: a
p of 1e-30 by it means little. If some alike cells of the same run are noisier, as on a device that
jitters, a cell is therefore assumed to be one of these with a small probability.

How far alike cells moved apart between two runs, although they should not have moved, shows whether
intervals are too narrow or too wide."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from statistics import fmean, median

import msgspec

from linkgauge.model.grouped import grouped

from .spread import Spread
from .summary import robust_deviation

_NOISIER = 9.0
"""The ratio of variances from which a cell is much noisier than another."""
_UNSEEN = 0.25
"""The share of noisy cells that may look quiet: 2 of 14 on a simulated device that jitters by 5 %,
whose cells end as soon as two visits agree within 1 %."""
_LEAST_TO_CENTRE, _LEAST_TO_SCALE = 3, 12
"""The fewest cells of a kind for a middle of their own, and the fewest cells in all."""
_LEAST_TO_NARROW = 12
_EXPECTED = 3
"""The fewest cells of a family, and the number of cells, assumed to have moved by one standard
error, that is added to them, so that a few cells that agree by chance make no interval narrow."""


class Single(msgspec.Struct, frozen=True):
    """The variance of a run's figure by its interval; `kind` is equal for alike cells."""

    kind: Hashable
    spread: Spread


def doubted(cells: Sequence[Single | None]) -> list[Spread | None]:
    """The variances of one run's cells. Each has the noisier alike cells' variance as a doubt, with
    the part of all cells that may be such cells unnoticed."""
    kinds = grouped((cell.kind, cell.spread) for cell in cells if cell is not None)
    return [None if cell is None else _doubted(cell.spread, kinds[cell.kind]) for cell in cells]


def _doubted(own: Spread, kind: Sequence[Spread]) -> Spread:
    noisier = [one for one in kind if one.variance > _NOISIER * own.variance]
    if not noisier:
        return own
    wide = Spread(fmean(one.variance for one in noisier), median(one.degrees for one in noisier))
    return Spread(own.variance, own.degrees, wide, _UNSEEN * len(noisier) / len(kind))


class MovedCell(msgspec.Struct, frozen=True):
    """A cell of two runs that moved by this many standard `errors`, by its intervals. `kind` is
    equal for alike cells, `family` for cells that depend on the same things."""

    kind: Hashable
    family: Hashable
    errors: float


def stretches(cells: Sequence[MovedCell]) -> list[float]:
    """A factor for the error of each cell. It is above 1 if cells moved farther apart than their
    intervals suggest. It is below 1 if the other cells of a large family all moved less: medians of
    samples that stall now and then agree much better than visits do."""
    wide = _excess(cells)
    squares = grouped((cell.family, (cell.errors / wide) ** 2) for cell in cells)
    return [
        wide * min(1.0, _by_others(squares[cell.family], (cell.errors / wide) ** 2))
        for cell in cells
    ]


def _by_others(family: Sequence[float], own: float) -> float:
    """The root mean square of a family without one of its cells, mixed with some values of 1; 1 for
    a small family."""
    others = len(family) - 1
    if others < _LEAST_TO_NARROW:
        return 1.0
    return math.sqrt((sum(family) - own + _EXPECTED) / (others + _EXPECTED))


def _excess(cells: Sequence[MovedCell]) -> float:
    """The factor, at least 1, by which cells moved farther apart than their intervals suggest: by
    the median distance, in standard errors, from the middle of the cells of a kind. An effect on a
    few cells, or on all of a kind alike, moves it little."""
    kinds = grouped((cell.kind, cell.errors) for cell in cells)
    apart = [
        abs(one - middle) * math.sqrt(len(own) / (len(own) - 1))
        for own in kinds.values()
        if len(own) >= _LEAST_TO_CENTRE
        for middle in (median(own),)
        for one in own
    ]
    return max(1.0, robust_deviation(apart)) if len(apart) >= _LEAST_TO_SCALE else 1.0

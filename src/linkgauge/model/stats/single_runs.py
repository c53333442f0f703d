"""Estimates how much another run of a cell would vary, from the intervals in a single run.

A cell's interval is computed from a few visits of the cell and from the visits of cells that seem
similar. If the few visits of a noisy cell agree by chance, the cell looks quiet and gets the
interval of quiet cells. The interval contains 95 of 100 figures of other runs, but says nothing of
values farther out: a p of 1e-30 by the interval means little. On a device that jitters, some
similar cells of the same run are noisier. Each cell is then assumed to be one of the noisy cells
with a small probability."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Hashable, Sequence
from functools import cache
from statistics import fmean, median

import msgspec

from linkgauge.model.grouped import grouped

from .spread import Spread

_NOISIER = 9.0
"""A cell is much noisier than another if the ratio of their variances is above this."""
_UNSEEN = 0.25
"""The share of noisy cells that may look quiet. On a simulated device that jitters by 5 %, it was 2
of 14 cells, which end as soon as two visits agree within 1 %."""


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

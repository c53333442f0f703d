"""Finds what is left once slow cells are explained: parts whose cells differ from their peers by so
little that only all of them together show it."""

from __future__ import annotations

import math
import statistics
from collections import Counter
from collections.abc import Collection, Hashable, Iterator, Sequence
from typing import NamedTuple

from linkgauge.model.grouped import grouped
from linkgauge.model.hardware.part import Kind, Part
from linkgauge.model.stats.moments import Moments

from .excess import Excess, Side, excess
from .limits import CHANCE, ENOUGH, LEAST_LOSS
from .table import Row, kinds_of, scatter_of


class SmallLoss(NamedTuple):
    """A part whose cells together show that it is slow: by how much they lose more than their
    peers, as logarithms. `least` is the loss that counts: the fewer peers a part has, the less they
    show what is usual."""

    part: Part
    lost: Excess
    least: float
    rows: tuple[Row, ...]


def small_losses(rows: Sequence[Row], parts: Collection[Part]) -> Iterator[SmallLoss]:
    """Yields the parts that all their cells together show to be slow, the surest first. Cells that
    use such a part are no peers of other parts, and these show how much equal parts differ."""
    left, known = list(rows), frozenset(parts)
    found = list(_compared(left, known))
    while sure := [one for one in found if one.lost.p < CHANCE / len(found)]:
        surest = max(sure, key=lambda one: one.lost.errors)
        left = [row for row in left if surest.part not in row.parts]
        found = list(_compared(left, known))
        usual = [abs(one.lost.gain) for one in found if one.part.kind == surest.part.kind]
        least = max(surest.least, ENOUGH * statistics.median(usual or [0.0]))
        if surest.lost.gain > max(least, _unrest(surest, rows)):
            yield surest


def _compared(rows: Sequence[Row], parts: frozenset[Part]) -> Iterator[SmallLoss]:
    """Yields each part with the loss of its cells, if it has enough of them."""
    classes = grouped((row.peers, row) for row in rows)
    whole = {of: Moments.over(-math.log(row.figure) for row in own) for of, own in classes.items()}
    kinds: dict[Hashable, Counter[Kind]] = {
        of: Counter(part.kind for part in frozenset().union(*(row.parts & parts for row in own)))
        for of, own in classes.items()
    }
    for part, touching in grouped((p, row) for row in rows for p in row.parts & parts).items():
        within = grouped((row.peers, row) for row in touching)
        peers = {of: kinds[of][part.kind] - 1 for of, some in within.items()
                 if len(some) < whole[of].n}  # fmt: skip
        own = tuple(row for row in touching if peers.get(row.peers))
        sums = {of: Moments.over(-math.log(row.figure) for row in within[of])
                for of, more in peers.items() if more}  # fmt: skip
        found = excess(Side(kinds_of(within[of][0].case), inside, whole[of].without(inside))
                       for of, inside in sums.items())  # fmt: skip
        if found is not None and len(own) > ENOUGH:
            least = LEAST_LOSS / (2 if max(peers.values()) >= ENOUGH else 1)
            yield SmallLoss(part, found, -math.log1p(-least), own)


def _unrest(loss: SmallLoss, rows: Sequence[Row]) -> float:
    """Returns how much more the part's cells scatter than their peers. It is the root of the
    difference of variances. Such scatter alone lowers the total of several transfers."""
    classes = {row.peers for row in loss.rows}
    beside = [row for row in rows if row.peers in classes and loss.part not in row.parts]
    one, other = (statistics.median(scatter_of(row.case) for row in side)
                  for side in (loss.rows, beside))  # fmt: skip
    return math.sqrt(max(0.0, one**2 - other**2))

"""Finds parts whose loss is so small that only all of their cells together show it."""

from __future__ import annotations

import math
import statistics
from collections import Counter
from collections.abc import Collection, Hashable, Iterator, Mapping, Sequence
from operator import attrgetter

import msgspec

from linkgauge.model.grouped import grouped
from linkgauge.model.hardware.part import Kind, Part
from linkgauge.model.stats.moments import Moments

from .excess import Excess, Side, excess
from .limits import CHANCE, ENOUGH, LEAST_LOSS
from .table import Row, kinds_of, onset


class Comparison(msgspec.Struct, frozen=True, eq=False):
    """A part's cells (`within`) and their peers (`others`) by class. `least` is the smallest loss
    that counts (a logarithm); it is larger if there are few peers. With `since`, only cells
    from this number on are `within`, and the part's earlier ones are peers."""

    part: Part
    within: Mapping[Hashable, Sequence[Row]]
    others: Mapping[Hashable, Moments]
    least: float
    since: int = 0

    @property
    def rows(self) -> tuple[Row, ...]:
        return tuple(row for own in self.within.values() for row in own)

    def lost(self, more: Mapping[Row, float] | None = None) -> Excess | None:
        """Returns how far cells are behind or, with losses `more` instead of theirs, would be."""
        sides = list[Side]()
        for of, own in self.within.items():
            lost, others = [-math.log(row.figure) for row in own], self.others[of]
            if more is not None:
                now = others.mean - statistics.fmean(lost)
                lost = [now + was - math.log1p(-more[row])
                        for was, row in zip(lost, own, strict=True)]  # fmt: skip
            sides.append(Side(kinds_of(own[0].case), Moments.over(lost), others))
        return excess(sides)


def compared(rows: Sequence[Row], parts: Collection[Part]) -> Iterator[Comparison]:
    """Yields comparisons of parts whose cells, or those since some cell, have enough peers: cells
    over similar parts and, since some cell, the part's own before it."""
    known, logs = frozenset(parts), {row: -math.log(row.figure) for row in rows}
    whole, kinds = dict[Hashable, Moments](), dict[Hashable, Counter[Kind]]()
    for of, own in grouped((row.peers, row) for row in rows).items():
        whole[of] = Moments.over(map(logs.__getitem__, own))
        touched = frozenset[Part]().union(*map(attrgetter("parts"), own))
        kinds[of] = Counter(map(attrgetter("kind"), touched))
    touching = grouped((part, row) for row in rows for part in row.parts & known)
    for part, own in ((part, touching[part]) for part in parts if part in touching):
        classes = grouped((row.peers, row) for row in own)
        # A class that is slow throughout does not show when the part became slow.
        usual = {of: statistics.fmean(map(logs.__getitem__, some)) for of, some in classes.items()}
        began = onset(own, [logs[row] - usual[row.peers] for row in own])
        for since in dict.fromkeys((0, began)):
            late = {of: [row for row in some if row.number >= since]
                    for of, some in classes.items()}  # fmt: skip
            early = {of for of, some in late.items() if len(some) < len(classes[of])}
            within = {of: some for of, some in late.items() if 0 < len(some) < whole[of].n
                      and (kinds[of][part.kind] > 1 or of in early)}  # fmt: skip
            if sum(map(len, within.values())) > ENOUGH:
                others = {of: whole[of].without(Moments.over(map(logs.__getitem__, some)))
                          for of, some in within.items()}  # fmt: skip
                most = max(kinds[of][part.kind] - 1 for of in within)
                least = LEAST_LOSS / (2 if most >= ENOUGH and not since else 1)
                yield Comparison(part, within, others, -math.log1p(-least), since)


def small_losses(
    rows: Sequence[Row], parts: Collection[Part]
) -> Iterator[tuple[list[Part], float, Comparison]]:
    """Yields slow parts (several if the same cells show them), the surest first, with their loss as
    a logarithm and these cells. The cells then no longer serve as peers of other parts."""
    left, found = list(rows), _losses(rows, parts)
    while sure := [one for one in found if found[one].p < CHANCE / len(found)]:
        surest = max(sure, key=lambda one: found[one].errors)
        equivalent = [
            one.part for one in sure if math.isclose(found[one].errors, found[surest].errors)
        ]
        if (loss := found[surest].gain) > surest.least:
            yield equivalent, loss, surest
        left = [row for row in left if surest.part not in row.parts]
        found = _losses(left, parts)


def _losses(rows: Sequence[Row], parts: Collection[Part]) -> dict[Comparison, Excess]:
    found = dict[Comparison, Excess]()
    for one in compared(rows, parts):
        if (lost := one.lost()) is not None:
            # Of all cells of a part, `since` is the one that shows most.
            found[one] = lost._replace(p=lost.p * max(1, one.since and len(one.rows)))
    return found

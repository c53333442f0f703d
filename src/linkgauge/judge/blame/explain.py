"""Computes how much of the loss in the table a set of suspected parts explains.

A part that is to blame has lost a constant fraction of its rate, from the beginning or from some
cell on. Or its rate falls by a constant fraction with each cell. What stays unexplained is the sum
of squared logarithms."""

from __future__ import annotations

import itertools
import math
import statistics
from collections.abc import Hashable, Mapping, Sequence
from functools import cache

import msgspec

from linkgauge.model.grouped import grouped
from linkgauge.model.hardware.part import Part

from .limits import LATER, LEAST_LOSS, PART, SPARED, SPLIT
from .table import Row


class Suspect(msgspec.Struct, frozen=True):
    """A part that is suspected to be slow, from the cell with the number `since` on. Its rate is
    lower by a constant fraction or, if it `drifts`, falls from cell to cell."""

    part: Part
    since: int = 0
    drifts: bool = False


Suspects = tuple[Suspect, ...]


class Fit(msgspec.Struct, frozen=True):
    """How well suspects explain the table. `unexplained` is the loss that they leave, and `cost`
    that of blaming them. `levels` has the loss of each suspect as a logarithm; for a drift, per
    cell."""

    unexplained: float
    cost: float
    levels: dict[Suspect, float]

    @property
    def total(self) -> float:
        return self.unexplained + self.cost

    def is_as_good(self, other: Fit) -> bool:
        """Whether this fit explains as much as the other fit, at hardly more cost."""
        same = abs(self.unexplained - other.unexplained) < SPARED / 4
        return same and self.cost < other.cost + PART


class Model:
    """Fits sets of suspects to a table. `seen` are parts that counted errors: to blame them costs
    less."""

    def __init__(self, rows: Sequence[Row], seen: frozenset[Part]) -> None:
        self._rows = rows
        self._seen = seen
        classes = grouped((row.peers, row) for row in rows)
        self._sizes = {peers: len(members) for peers, members in classes.items()}
        self._well = grouped((row.peers, row) for row in rows if not row.slow)
        self._nothing = sum(row.weight * row.lost**2 for row in rows)
        by_part = grouped((part, row) for row in rows for part in row.parts)
        self._touching = {part: dict.fromkeys(own) for part, own in by_part.items()}
        self._steps = cache(self._find_steps)

    def fit(self, suspects: Suspects) -> Fit:
        """Returns how well these suspects explain the table; not at all if one of them hardly slows
        anything, or if two are the same part."""
        affected: dict[Row, dict[Suspect, int]] = {}
        for suspect in suspects:
            for row, steps in self._steps(suspect).items():
                affected.setdefault(row, {})[suspect] = steps
        found = {s: self._levels(s, affected) for s in suspects}
        levels = {s: statistics.median(of.values()) if of else 0.0 for s, of in found.items()}
        is_twice = len({s.part for s in suspects}) < len(suspects)
        if is_twice or any(self._is_nothing(s, level) for s, level in levels.items()):
            return Fit(math.inf, 0.0, levels)
        cost = sum(self._cost(s, suspects) for s in suspects)
        cost += sum(SPARED * (len(of) - 1) for s, of in found.items() if not s.drifts)
        left = self._nothing
        for row, by in affected.items():
            own = [steps * found[s].get(row.peers, levels[s]) for s, steps in by.items()]
            over_all = [steps * levels[s] for s, steps in by.items()]
            # Of cells that should be equal, some may cross a part whole, and others half.
            least = min(_unexplained(row, own), _unexplained(row, over_all) + SPLIT)
            if row.slow or not any(row.peers in found[s] for s in by):
                # Another part may be the bottleneck of this cell, but hardly of its equals.
                least = min(least, row.lost**2 + SPARED)
            left += row.weight * (least - row.lost**2)
        return Fit(left, cost, levels)

    def _is_nothing(self, suspect: Suspect, level: float) -> bool:
        steps = max(self._steps(suspect).values(), default=0) if level else 0
        return level * steps > math.log1p(-LEAST_LOSS)

    def _cost(self, suspect: Suspect, suspects: Suspects) -> float:
        """Returns the cost of blaming a suspect. Errors that a part counted do not count for it if
        a suspected part around it explains them."""
        own = self._touching[suspect.part].keys()
        around = {o.part for o in suspects if own < self._touching[o.part].keys()}
        is_seen = suspect.part in self._seen and self._seen.isdisjoint(around)
        return (PART / 2 if is_seen else PART) + (LATER if suspect.since or suspect.drifts else 0.0)

    def _find_steps(self, suspect: Suspect) -> dict[Row, int]:
        """Returns the rows that a suspect slows, each with the multiple of its level: 1 or, for a
        drift, the cells since it began."""
        since = [row for row in self._touching[suspect.part] if row.number >= suspect.since]
        within = grouped((row.peers, row.number) for row in since)
        if not suspect.drifts:
            return {row: 1 for row in since if row.slow or row.fine or self._tells(suspect, row)}
        # What all peers share slows their fastest, too: it is the first of them.
        begin = {peers: numbers[0] if len(numbers) == self._sizes[peers] else suspect.since
                 for peers, numbers in within.items()}  # fmt: skip
        return {row: row.number - begin[row.peers] for row in since}

    def _tells(self, suspect: Suspect, row: Row) -> bool:
        """Whether a row tells something of a suspect: it has a peer that is not slow and that the
        suspect does not slow, or is compared with its expectation."""
        return row.low or any(
            suspect.part not in peer.parts or peer.number < suspect.since
            for peer in self._well.get(row.peers, ())
        )

    def _levels(
        self, suspect: Suspect, affected: Mapping[Row, Mapping[Suspect, int]]
    ) -> dict[Hashable, float]:
        """Returns the loss of a suspect by class, from the slow cells that no other suspect slows,
        or else from all. A drift has the same one in all classes."""
        slow = [row for row in self._steps(suspect)
                if row.slow and (suspect.drifts or self._tells(suspect, row))]  # fmt: skip
        alone = [row for row in slow if len(affected[row]) == 1] or slow
        values = [(row.peers, (row.lost / (affected[row][suspect] or 1),
                               row.weight * affected[row][suspect])) for row in alone]  # fmt: skip
        if suspect.drifts and values:
            level = weighted_median([value for _, value in values])
            return {peers: level for peers, _ in values}
        totals = {row.peers for row in alone if row.case.is_total}
        return {peers: min(some)[0] if peers in totals else weighted_median(some)
                for peers, some in grouped(values).items()}  # fmt: skip


def _unexplained(row: Row, levels: Sequence[float]) -> float:
    """Returns what suspects with these losses leave of a row's. Together they slow a cell at least
    as much as the slowest of them, and at most as much as all of them. Of several transfers at
    once, they may slow any number."""
    least = 0.0 if row.case.is_total and row.slow else min(levels)
    return max(sum(levels) - row.lost, row.lost - least, 0.0) ** 2


def weighted_median(values: Sequence[tuple[float, float]]) -> float:
    """Returns the weighted median of pairs of values and weights."""
    ordered = sorted(values)
    half = sum(weight for _, weight in ordered) / 2
    passed = itertools.accumulate(weight for _, weight in ordered)
    at = next(place for place, weight in enumerate(passed) if weight >= half - 1e-12)
    return ordered[at][0]

"""Compares cells that should be equal, and computes the loss that remains if some parts are
suspected to be slow.

Many sets of suspects are tried, so values that do not depend on the suspects are computed once."""

from __future__ import annotations

import itertools
import math
from bisect import bisect_left
from collections.abc import Iterable, Sequence, Set
from functools import cached_property, lru_cache
from operator import neg

import msgspec

from linkgauge.model.grouped import grouped
from linkgauge.model.hardware.part import Part

from .relative_rates import RelativeRate

SPARED = 0.004
"""The cost of a cell that touches the blamed part and is not slow, in squared logarithms (6 % off).
Another part may be the cell's bottleneck, but the part with the fewest such cells explains best."""
SPLIT = 0.012
"""The cost of a slow cell whose peers are fast, although they touch the part as well."""
_PART = 0.008
"""The cost of blaming a part: as much as two cells that touch it and are not slow."""
_BEGAN = 0.006
"""The cost of blaming a part that was well at first."""
_DRIFTS = 0.008
"""The cost of blaming a part whose rate changes from cell to cell: a drift is blamed only where it
explains the cells better than parts do."""
_LEAST = math.log(0.95)
_LEAST_DRIFT = math.log(0.9995)
"""The logarithms of the share of the rate above which a part counts as healthy; for a drift, per
cell."""


class Suspect(msgspec.Struct, frozen=True):
    """A part that is suspected to be slow, from the cell with the number `since` on. Its rate is
    lower by a constant fraction or, if it `drifts`, falls from cell to cell."""

    part: Part
    drifts: bool = False
    since: int = 0

    @property
    def cost(self) -> float:
        return _PART + (_BEGAN if self.since else 0.0) + (_DRIFTS if self.drifts else 0.0)

    @property
    def least(self) -> float:
        return _LEAST_DRIFT if self.drifts else _LEAST


Suspects = tuple[Suspect, ...]
Struck = dict[Suspects, Set[int]]
"""The positions in a class of the cells that exactly these suspects slow, by the set of
suspects."""


class Base(msgspec.Struct, frozen=True):
    """The reference with which the rates of equal cells are compared. `top` is the logarithm of the
    rate that healthy cells reach. If `top` is None, each cell is compared with its expectation. If
    the rate is that of a single cell, `begin` is the number of this cell, and `parts` are the
    suspected parts that it touches."""

    top: float | None
    parts: frozenset[Part] = frozenset()
    begin: int = 0

    def slowing(self, by: Iterable[Suspect]) -> Suspects:
        """Returns the suspects in `by` that slow a cell more than they slow this reference."""
        return tuple(s for s in by if s.drifts or s.part not in self.parts)

    def flattering(self, by: Sequence[Suspect], suspects: Iterable[Suspect]) -> Suspects:
        """Returns the suspects whose drift slows only this reference, and not the cell. `by` are
        the suspects that slow the cell."""
        return tuple(s for s in suspects if s.drifts and s.part in self.parts and s not in by)

    def cells_to(self, number: int | None, s: Suspect) -> int:
        """Returns by how many steps of a drift a cell is slower than this reference. The drift of
        `s` slows each cell by one more step than the cell before. `number` is the number of the
        cell, or None for a cell that the drift does not slow. The result is negative if the drift
        slows only the reference."""
        own = s.since if number is None else number
        return own - (self.begin if s.part in self.parts else s.since)


class PeerClass:
    """Cells that should be equal. `members` has them, the fastest first. The place of a cell is its
    index in `members`."""

    def __init__(self, members: Iterable[RelativeRate]) -> None:
        self.members = sorted(members, key=lambda m: -m.relative)
        self.slow = frozenset(at for at, m in enumerate(self.members) if m.slow)
        self._is_low = any(m.low for m in self.members)
        self._logs = [math.log(m.case.figure) for m in self.members]
        self.weights = [m.weight for m in self.members]
        # Of the slow ones nothing, so that sums are of those that are well.
        self._well = [0.0 if m.slow else m.weight for m in self.members]
        self._well_logs = [log * weight for log, weight in zip(self._logs, self._well, strict=True)]
        self._places = grouped(
            (part, place) for place, m in enumerate(self.members) for part in m.case.touched
        )
        self._struck: dict[Suspect, Set[int]] = {}
        self._beside_top = lru_cache(maxsize=1)(self._find_beside_top)  # most have the same one

    def struck(self, suspects: Suspects) -> Struck:
        """Groups the places of cells by the suspects that slow them."""
        found: list[tuple[Suspects, Set[int]]] = []
        for s in suspects:
            alone, before = self._struck_by(s), found
            found = []
            for by, places in before:
                if both := places & alone:
                    found.append(((*by, s), both))
                    alone, places = alone - both, places - both  # noqa: PLW2901
                if places:
                    found.append((by, places))
            if alone:
                found.append(((s,), alone))
        return dict(found)

    def _struck_by(self, s: Suspect) -> Set[int]:
        if s not in self._struck:
            touching = self._places.get(s.part, ())
            some = (at for at in touching if self.members[at].case.number >= s.since)
            self._struck[s] = frozenset(some)
        return self._struck[s]

    def base(self, struck: Struck) -> Base:
        """Returns the reference for these cells. It is the mean of the healthy cells that touch no
        suspect or, without such cells, the fastest cell. If all cells are low, it is their
        expectation."""
        on_fastest = next((by for by, places in struck.items() if 0 in places), ())
        if self._is_low and not any(s.drifts for s in on_fastest):
            return Base(None)
        if self._well_base is not None and all(map(self.slow.issuperset, struck.values())):
            return self._well_base
        weights, logs = self._well.copy(), self._well_logs.copy()
        for place in itertools.chain.from_iterable(struck.values()):
            weights[place] = logs[place] = 0.0
        # Their mean: the fastest of many that scatter is faster than any of them.
        if weight := sum(weights):
            return Base(sum(logs) / weight)
        parts = frozenset(s.part for s in on_fastest)
        return Base(self._logs[0], parts, self.members[0].case.number if parts else 0)

    def logs(self, places: Iterable[int], base: Base) -> list[float]:
        """Returns the logarithms of the cells' rates, relative to the reference. Rates above the
        reference count as equal to it."""
        top = base.top
        if top is None:
            return [self.members[place].log for place in places]
        return [log - top if log < top else 0.0 for log in map(self._logs.__getitem__, places)]

    def unstruck(self, base: Base) -> list[float]:
        """Returns the unexplained loss of each cell if no suspect slows it, times the cell's
        weight."""
        top = base.top
        if base.parts:
            return self._within.copy()
        if top is None or self._is_low:
            return self._beside_expected.copy()
        return list(self._beside_top(top))

    @cached_property
    def _well_base(self) -> Base | None:
        """Returns the mean of all healthy cells as a reference, or None without healthy cells."""
        weight = sum(self._well)
        return Base(sum(self._well_logs) / weight) if weight else None

    def _find_beside_top(self, top: float) -> list[float]:
        # Those that reach the top come first, and leave nothing.
        first = bisect_left(self._logs, -top, key=neg)
        some = zip(self.weights[first:], self._logs[first:], strict=True)
        return [0.0] * first + [weight * (log - top) ** 2 for weight, log in some]

    @cached_property
    def _within(self) -> list[float]:
        return [m.weight * _within(m) for m in self.members]

    @cached_property
    def split(self) -> Set[int]:
        """Returns the places of cells that are clearly slower than the fastest cell."""
        return frozenset(at for at, m in enumerate(self.members) if _within(m) > SPLIT)

    @cached_property
    def _beside_expected(self) -> list[float]:
        return [m.weight * m.log**2 for m in self.members]

    @cached_property
    def untouched(self) -> float:
        """Returns the unexplained loss of these cells if no suspect touches them."""
        return sum(self.unstruck(self.base({})))


def _within(member: RelativeRate) -> float:
    """Returns the unexplained loss of a cell that no suspect slows, compared with the fastest
    cell."""
    return member.relative**2 + (SPARED if member.fine else 0.0)

"""Computes how much of the slow cells' loss a set of suspected parts explains.

A part that is to blame has lost a constant fraction of its rate, from the beginning or from some
cell on. Or its rate falls exponentially with the number of the cell. The unexplained loss is the
sum of squared logarithms."""

from __future__ import annotations

import itertools
import math
import statistics
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import msgspec

from linkgauge.model.grouped import grouped
from linkgauge.model.hardware.part import Part

from .peer_class import SPARED, SPLIT, Base, PeerClass, Suspect, Suspects
from .relative_rates import NOISY, RelativeRate

_UNSEEN = 0.014
"""The cost of blaming a part whose links counted no errors, in squared logarithms, in addition to
its suspect's."""
_HIDDEN = 2 * math.log(2) * NOISY**2
"""The cost of each cell that touches a drifting part before the drift shows. Another part limits
such a cell or not, each as likely as the other: one bit. In squared logarithms, a unit of
log-likelihood is twice the variance of a figure that has full weight."""
_SAME = 1e-3
"""The difference in unexplained loss that does not matter."""
_PREFERENCE = 0.015
"""The difference in cost that makes one explanation likelier, but not certain."""


class Fit(msgspec.Struct, frozen=True):
    """The result of blaming a set of suspected parts. `unexplained` is the loss that they do not
    explain. `cost` is the cost of blaming them. `levels` has, for each part, the logarithm of the
    share of the rate that is left; for a drift, it is the logarithm per cell."""

    unexplained: float
    levels: dict[Suspect, float]
    cost: float = 0.0

    @property
    def loss(self) -> float:
        return self.unexplained + self.cost

    def is_as_good(self, other: Fit) -> bool:
        """Whether this fit explains as much as the other fit, at hardly more cost."""
        same = abs(self.unexplained - other.unexplained) < _SAME
        return same and self.cost < other.cost + _PREFERENCE


class Model:
    """Computes how well sets of suspected parts explain the slow cells of a run."""

    def __init__(self, rates: Sequence[RelativeRate], seen: frozenset[Part]) -> None:
        self._seen = seen
        by_peers = grouped((rate.case.peers, rate) for rate in rates)
        self._classes = [PeerClass(members) for members in by_peers.values()]
        self._cells: dict[Part, set[int]] = {}
        for rate in rates:
            for part in rate.case.touched:
                self._cells.setdefault(part, set()).add(rate.case.number)

    def fit(self, suspects: Suspects) -> Fit:
        """Returns how well these suspected parts explain the slow cells. The loss is infinite if a
        part hardly slows anything, or if two suspects are the same part."""
        views = [_ClassView(group, suspects) for group in self._classes]
        own = _own_levels(suspects, views)
        levels = {s: statistics.median(of.values()) for s, of in own.items() if of}
        twice = len({s.part for s in suspects}) < len(suspects)
        if twice or any(levels.get(s, 0.0) > s.least for s in suspects):
            return Fit(math.inf, levels)
        cost = sum(s.cost + (_UNSEEN if self._is_unseen(s, suspects) else 0.0) for s in suspects)
        cost += sum(_HIDDEN * self._before(s) for s in suspects if s.drifts)
        loss = sum(SPARED * (len(of) - 1) for s, of in own.items() if not s.drifts)
        for at, view in enumerate(views):
            in_class = {s: own[s].get(at, level) for s, level in levels.items()}
            loss += view.unexplained(levels, in_class)
        return Fit(loss, levels, cost)

    def _before(self, s: Suspect) -> int:
        return sum(number < s.since for number in self._cells[s.part])

    def _is_unseen(self, s: Suspect, suspects: tuple[Suspect, ...]) -> bool:
        """Whether there are no errors that show the part to be at fault. Errors do not count if a
        suspected part around it explains them."""
        around = (o.part for o in suspects if self._cells[s.part] < self._cells[o.part])
        return s.part not in self._seen or not self._seen.isdisjoint(around)


class _ClassView:
    """A class of equal cells, seen with a set of suspected parts that slow some of them."""

    def __init__(self, group: PeerClass, suspects: Suspects) -> None:
        self._group = group
        self._struck = group.struck(suspects)
        self._base = group.base(self._struck) if self._struck else Base(None)

    def slowed(self, at: int, suspects: Suspects) -> Iterator[tuple[Suspect, _Slowed]]:
        """Yields each suspect with the slow cells that it slows. `at` is the number of the
        class."""
        base, members = self._base, self._group.members
        for by, places in self._struck.items():
            slow = sorted(places & self._group.slow)
            slowing = base.slowing(by)
            if not slow or not slowing:
                continue
            logs = self._group.logs(slow, base)
            away = base.flattering(by, suspects)
            found = _Slowed(at, base, [members[place] for place in slow], logs, away)
            for s in slowing:
                others = tuple(o for o in suspects if o != s and (o in slowing or o in away))
                yield s, found._replace(others=others)

    def unexplained(
        self, levels: Mapping[Suspect, float], in_class: Mapping[Suspect, float]
    ) -> float:
        """Returns the unexplained loss of the class. `levels` has the level of each suspect over
        all classes, and `in_class` the level in this class."""
        if not self._struck:
            return self._group.untouched
        # Where even the fastest touches a suspect, that one may not be its bottleneck.
        found = self._beside(self._base, levels, in_class)
        if not self._base.parts:
            return found
        return min(found, self._beside(Base(self._base.top), levels, in_class, found))

    def _beside(
        self,
        base: Base,
        levels: Mapping[Suspect, float],
        in_class: Mapping[Suspect, float],
        most: float = math.inf,
    ) -> float:
        """Returns the unexplained loss of the class, relative to the reference `base`. The
        computation may stop once the loss exceeds `most`."""
        members, weights = self._group.members, self._group.weights
        values, spent = self._group.unstruck(base), 0.0
        for suspects, places in self._struck.items():
            if not (by := tuple(s for s in suspects if s in levels)):
                continue
            away = base.flattering(by, levels)
            flattered = sum(levels[s] * base.cells_to(None, s) for s in away)
            # A cell of which it is the hub, among others that only reach it as well.
            splitting = [
                levels[s]
                for s in by
                if not s.drifts and (s.part in base.parts or in_class[s] > levels[s])
            ]
            slowing = {s: in_class[s] for s in base.slowing(by)}
            drifts = any(s.drifts for s in slowing)
            least, whole = _together(list(slowing.values()))
            some = places if slowing else places & self._group.split
            for place, left in zip(some, self._group.logs(some, base), strict=True):
                log, weight = left - flattered, weights[place]
                if drifts:
                    number = members[place].case.number
                    least, whole = _together([
                        level * base.cells_to(number, s) if s.drifts else level
                        for s, level in slowing.items()
                    ])  # fmt: skip
                if slowing:
                    above, below = log - least, whole - log
                    off = max(below, above)
                    off = off**2 if off > 0.0 else 0.0
                    excuse = log**2 + SPARED
                    values[place] = weight * (min(excuse, off))
                for level in splitting:
                    split = weight * ((log - level) ** 2 + SPLIT)
                    values[place] = min(values[place], split)
                spent += values[place]
                if spent > most:
                    return spent
        return sum(values)


def _together(levels: Sequence[float]) -> tuple[float, float]:
    """Returns the lowest and the highest loss of a cell that several suspects slow. The lowest is
    that of the slowest suspect, and the highest that of all suspects together."""
    return min(levels, default=0.0), sum(levels)


def _own_levels(suspects: Suspects, views: Sequence[_ClassView]) -> dict[Suspect, _Levels]:
    """Returns the level of each suspect, by class. Cells that only this suspect slows are used if
    there are any. Otherwise the level is from all of its slow cells."""
    alone: dict[Suspect, list[_Slowed]] = {s: [] for s in suspects}
    shared: dict[Suspect, list[_Slowed]] = {s: [] for s in suspects}
    for at, view in enumerate(views):
        for s, slowed in view.slowed(at, suspects):
            of = shared if slowed.others else alone
            of[s].append(slowed)
    known = {s: _levels(s, slowed) for s, slowed in alone.items() if slowed}
    return {s: known.get(s) or _of_shared(s, shared[s], known) for s in suspects}


_Levels = dict[int, float]
"""The logarithm of the share of the rate that a suspect leaves, by class; for a drift, per cell."""


class _Slowed(NamedTuple):
    """Slow cells of the class with the number `at`. `logs` has the logarithms of their loss,
    relative to `base`. `away` are the suspects that slow only the reference. `others` are the other
    suspects that change the loss."""

    at: int
    base: Base
    members: Sequence[RelativeRate]
    logs: Sequence[float]
    away: Suspects
    others: Suspects = ()

    def cells_to(self, s: Suspect) -> list[int]:
        """Returns by how many steps of the drift of `s` each cell is slower than the reference."""
        if s in self.away:
            return [self.base.cells_to(None, s)] * len(self.members)
        return [self.base.cells_to(member.case.number, s) for member in self.members]


def _levels(s: Suspect, slowed: Sequence[_Slowed]) -> _Levels:
    by_class: dict[int, list[tuple[float, float]]] = {}
    for some in slowed:
        weights = [member.weight for member in some.members]
        logs = some.logs
        if s.drifts:
            logs = [log / (to or 1) for log, to in zip(logs, some.cells_to(s), strict=True)]
        by_class.setdefault(some.at, []).extend(zip(logs, weights, strict=True))
    if s.drifts and by_class:
        slope = weighted_median([each for logs in by_class.values() for each in logs])
        return dict.fromkeys(by_class, slope)
    return {at: weighted_median(logs) for at, logs in by_class.items()}


def weighted_median(values: Sequence[tuple[float, float]]) -> float:
    """Returns the weighted median of pairs of values and weights."""
    ordered = sorted(values)
    half = sum(weight for _, weight in ordered) / 2
    passed = itertools.accumulate(weight for _, weight in ordered)
    at = next(place for place, weight in enumerate(passed) if weight >= half - 1e-12)
    return ordered[at][0]


def _of_shared(s: Suspect, slowed: Sequence[_Slowed], known: Mapping[Suspect, _Levels]) -> _Levels:
    raw = _levels(s, slowed)
    if not any(o in known for some in slowed for o in some.others):
        return raw
    rest = [some._replace(logs=_rest(some, known)) for some in slowed]
    of_rest = _levels(s, rest)
    return of_rest if _scatter(s, rest, of_rest) < _scatter(s, slowed, raw) else raw


def _rest(slowed: _Slowed, known: Mapping[Suspect, _Levels]) -> list[float]:
    """Returns the loss of each cell that other suspects do not explain."""
    effects = [_effects(o, slowed, known[o]) for o in slowed.others if o in known]
    return [log - sum(of) for log, *of in zip(slowed.logs, *effects, strict=True)]


def _effects(s: Suspect, slowed: _Slowed, levels: _Levels) -> list[float]:
    level = levels.get(slowed.at, statistics.median(levels.values()))
    if not s.drifts:
        return [level] * len(slowed.logs)
    return [level * to for to in slowed.cells_to(s)]


def _scatter(s: Suspect, slowed: Sequence[_Slowed], levels: _Levels) -> float:
    return sum(
        abs(log - effect)
        for some in slowed
        for log, effect in zip(some.logs, _effects(s, some, levels), strict=True)
    )

"""What suspects explain of the cells that are slow, and leave unexplained of all.

A part that is to blame has a constant fraction of its rate wherever it is the bottleneck, from the
beginning or from some cell on, or a rate that falls exponentially with the cell's number. What is
left unexplained is the sum of squared logarithms.
"""

from __future__ import annotations

import itertools
import math
import statistics
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import msgspec

from .relative_rates import RelativeRate, median_of

_SPARED = 0.004
"""What a cell costs that touches the part and is not slow, in squared logarithms (6 % off): other
parts may be its bottleneck, but the part that needs the fewest such excuses explains best."""
_PART = 0.008
"""What it costs to blame a part: as much as the excuses of two cells …"""
_UNSEEN = 0.014
"""… that its links counted no errors …"""
_BEGAN = 0.006
"""… that it was well at first …"""
_DRIFTS = 0.008
"""… that it changes from cell to cell: time is blamed only where it explains better than parts."""
_SPLIT = 0.012
"""What a slow cell costs whose peers are fast, although they touch the part as well."""
_LEAST = math.log(0.95)
_LEAST_DRIFT = math.log(0.9995)
"""Levels above which a part is as good as well, as logarithms; of a drift per cell."""
_SAME = 1e-3
"""Difference of what is unexplained that says nothing …"""
_PREFERENCE = 0.015
"""… and of what it costs to blame parts that makes one likelier, but not sure."""


class Suspect(msgspec.Struct, frozen=True):
    """A part, and how it may be slow: by a constant fraction `since` the cell of that number, or
    ever slower (`drifts`)."""

    part: str
    drifts: bool = False
    since: int = 0

    @property
    def cost(self) -> float:
        return _PART + (_BEGAN if self.since else 0.0) + (_DRIFTS if self.drifts else 0.0)

    @property
    def least(self) -> float:
        return _LEAST_DRIFT if self.drifts else _LEAST

    def strikes(self, member: RelativeRate) -> bool:
        return self.part in member.case.touched and member.case.number >= self.since

    def slows(self, member: RelativeRate, left: _Left) -> bool:
        """Whether a cell should be slower for it than the one that it is compared with."""
        return self.strikes(member) and (self.drifts or self.part not in left.base)


class _Left(msgspec.Struct, frozen=True):
    """What is left of the rate of each cell of a class, as logarithms, beside one that is taken to
    be well. That one, of number `begin`, touches suspects of its own: `base`."""

    logs: list[float]
    base: frozenset[str] = frozenset()
    begin: int = 0

    def cells_to(self, member: RelativeRate, s: Suspect) -> int:
        """How many cells a drift had to slow this one more than what it is compared with: less than
        none if only that one touches what drifts."""
        own = member.case.number if s.strikes(member) else 0
        return own - (self.begin if s.part in self.base else 0)

    def flatters(self, member: RelativeRate, s: Suspect) -> bool:
        """Whether only what this one is compared with touches what drifts."""
        return s.drifts and s.part in self.base and not s.strikes(member)


class _Class:
    """Peers, and what is left of the rate of each beside those that are well."""

    def __init__(self, members: Sequence[RelativeRate]) -> None:
        self.members = members
        self.fastest = max(members, key=lambda m: m.relative)
        self.is_low = any(m.low for m in members)
        self.logs = {m.case.number: math.log(median_of(m.case)) for m in members}

    def left(self, suspects: tuple[Suspect, ...]) -> _Left:
        """Beside those that are well and that none of them strikes, else what is expected if all
        are low, else the fastest."""
        if self.is_low and not any(s.drifts and s.strikes(self.fastest) for s in suspects):
            return _Left([m.log for m in self.members])
        free = [m for m in self.members if not any(s.strikes(m) for s in suspects)]
        well = [m for m in free if not m.slow]
        top = self._mean(well) if well else self.logs[self.fastest.case.number]
        logs = [min(0.0, self.logs[m.case.number] - top) for m in self.members]
        if well:
            return _Left(logs)
        base = frozenset(s.part for s in suspects if s.strikes(self.fastest))
        return _Left(logs, base, self.fastest.case.number if base else 0)

    def _mean(self, members: Sequence[RelativeRate]) -> float:
        """The fastest of many that scatter is faster than any of them."""
        weights = [m.weight for m in members]
        return sum(self.logs[m.case.number] * m.weight for m in members) / sum(weights)


class Fit(msgspec.Struct, frozen=True):
    """What suspects leave `unexplained`, and what it costs to blame them; the logarithm of the rate
    that each leaves, of a drift per cell."""

    unexplained: float
    levels: dict[Suspect, float]
    cost: float = 0.0

    @property
    def loss(self) -> float:
        return self.unexplained + self.cost

    def is_as_good(self, other: Fit) -> bool:
        """Whether no cell speaks more against this one, and little else does."""
        same = abs(self.unexplained - other.unexplained) < _SAME
        return same and self.cost < other.cost + _PREFERENCE


class Model:
    """What suspects leave unexplained of all cells."""

    def __init__(self, rates: Sequence[RelativeRate], seen: frozenset[str]) -> None:
        self._seen = seen
        by_peers: dict[tuple[str, ...] | None, list[RelativeRate]] = {}
        for rate in rates:
            by_peers.setdefault(rate.case.peers, []).append(rate)
        self._classes = [_Class(members) for members in by_peers.values()]
        self._cells: dict[str, set[int]] = {}
        for rate in rates:
            for part in rate.case.touched:
                self._cells.setdefault(part, set()).add(rate.case.number)

    def fit(self, suspects: tuple[Suspect, ...]) -> Fit:
        """Infinitely bad of suspects that leave a part as good as well, and of one part twice."""
        left = [group.left(suspects) for group in self._classes]
        own = self._own_levels(suspects, left)
        levels = {s: statistics.median(of.values()) for s, of in own.items() if of}
        twice = len({s.part for s in suspects}) < len(suspects)
        if twice or any(levels.get(s, 0.0) > s.least for s in suspects):
            return Fit(math.inf, levels)
        cost = sum(s.cost + (_UNSEEN if self._is_unseen(s, suspects) else 0.0) for s in suspects)
        loss = sum(_SPARED * (len(of) - 1) for s, of in own.items() if not s.drifts)
        for at, (group, one) in enumerate(zip(self._classes, left, strict=True)):
            # Where even the fastest touches a suspect, that one may not be its bottleneck.
            ways = (one, _Left(one.logs)) if one.base else (one,)
            loss += min(self._unexplained(group, way, at, own, levels) for way in ways)
        return Fit(loss, levels, cost)

    def _unexplained(
        self, group: _Class, one: _Left, at: int, own: dict[Suspect, _Levels],
        levels: dict[Suspect, float],
    ) -> float:  # fmt: skip
        """Of the class numbered `at`, by the suspects' levels in it, else in others."""
        loss = 0.0
        for member, seen in zip(group.members, one.logs, strict=True):
            flattered = (s for s in levels if one.flatters(member, s))
            log = seen - sum(levels[s] * one.cells_to(member, s) for s in flattered)
            expected = [
                level * one.cells_to(member, s) if s.drifts else level
                for s in levels
                if s.slows(member, one)
                for level in (own[s].get(at, levels[s]),)
            ]
            left_over = _unexplained_part(member, log, expected, bool(one.base))
            for s, level in levels.items():
                if s.part in one.base and s.strikes(member) and not s.drifts:
                    left_over = min(left_over, (log - level) ** 2 + _SPLIT)
            loss += member.weight * left_over
        return loss

    def _is_unseen(self, s: Suspect, suspects: tuple[Suspect, ...]) -> bool:
        """Whether no errors speak against it, or only those that a part around it explains."""
        around = (o.part for o in suspects if self._cells[s.part] < self._cells[o.part])
        return s.part not in self._seen or not self._seen.isdisjoint(around)

    def _own_levels(
        self, suspects: tuple[Suspect, ...], left: Sequence[_Left]
    ) -> dict[Suspect, _Levels]:
        """By class: from slow cells that no other suspect slows, if there are any in any class;
        else from all that it slows, or from what the others leave of these if that is steadier."""
        alone: dict[Suspect, list[_Slowed]] = {s: [] for s in suspects}
        shared: dict[Suspect, list[_Slowed]] = {s: [] for s in suspects}
        for at, (group, one) in enumerate(zip(self._classes, left, strict=True)):
            for member, log in zip(group.members, one.logs, strict=True):
                slowing = [s for s in suspects if s.slows(member, one)] if member.slow else []
                for s in slowing:
                    others = tuple(o for o in suspects if o != s
                                   and (o in slowing or one.flatters(member, o)))  # fmt: skip
                    of = shared if others else alone
                    of[s].append(_Slowed(at, one, member, log, others))
        known = {s: _levels(s, slowed) for s, slowed in alone.items() if slowed}
        return {s: known.get(s) or _of_shared(s, shared[s], known) for s in suspects}


_Levels = dict[int, float]
"""Logarithm of what a suspect leaves of the rate, by class; of a drift per cell."""


class _Slowed(NamedTuple):
    """What is left of a cell of the class `at`, and the other suspects that slow it."""

    at: int
    left: _Left
    member: RelativeRate
    log: float
    others: tuple[Suspect, ...]


def _levels(s: Suspect, slowed: Sequence[_Slowed]) -> _Levels:
    by_class: dict[int, list[tuple[float, float]]] = {}
    for one in slowed:
        cells = (one.left.cells_to(one.member, s) or 1) if s.drifts else 1
        by_class.setdefault(one.at, []).append((one.log / cells, one.member.weight))
    if s.drifts and by_class:
        slope = _weighted_median([each for logs in by_class.values() for each in logs])
        return dict.fromkeys(by_class, slope)
    return {at: _weighted_median(logs) for at, logs in by_class.items()}


def _weighted_median(values: Sequence[tuple[float, float]]) -> float:
    """Of values with weights: what is between the lower and the upper half of the weight."""
    ordered = sorted(values)
    half = sum(weight for _, weight in ordered) / 2
    passed = itertools.accumulate(weight for _, weight in ordered)
    at = next(place for place, weight in enumerate(passed) if weight >= half - 1e-12)
    return ordered[at][0]


def _of_shared(s: Suspect, slowed: Sequence[_Slowed], known: Mapping[Suspect, _Levels]) -> _Levels:
    raw = _levels(s, slowed)
    if not any(o in known for one in slowed for o in one.others):
        return raw
    rest = [
        one._replace(log=one.log - sum(_effect(o, one, known[o]) for o in one.others if o in known))
        for one in slowed
    ]
    of_rest = _levels(s, rest)
    return of_rest if _scatter(s, rest, of_rest) < _scatter(s, slowed, raw) else raw


def _effect(s: Suspect, slowed: _Slowed, levels: _Levels) -> float:
    level = levels.get(slowed.at, statistics.median(levels.values()))
    return level * slowed.left.cells_to(slowed.member, s) if s.drifts else level


def _scatter(s: Suspect, slowed: Sequence[_Slowed], levels: _Levels) -> float:
    return sum(abs(one.log - _effect(s, one, levels)) for one in slowed)


def _unexplained_part(
    member: RelativeRate, log: float, expected: Sequence[float], is_within: bool
) -> float:
    """What is left unexplained of a cell of which suspects leave so much. Where even the fastest
    peer touches a suspect (`is_within`), that a cell is as fast as it should be speaks against."""
    if expected:
        # Several slow it by as much as the slowest at least, by all of them together at most.
        off = max(0.0, log - min(expected), sum(expected) - log)
        return min(off**2, log**2 + _SPARED)
    if is_within:
        return member.relative**2 + (_SPARED if member.fine else 0.0)
    return (member.log if member.low else log) ** 2

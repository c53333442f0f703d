"""Estimates how much a cell's figure varies from run to run, by its own runs and by similar cells.
The variances of similar cells are assumed to follow a scaled inverse χ² (G. Smyth, Statistical
Applications in Genetics and Molecular Biology 3, 2004). docs/intervals.md derives this."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from functools import cache
from statistics import fmean, median
from typing import NamedTuple

import msgspec

from linkgauge.model.grouped import grouped

from .moments import LEAST, Spread
from .student import beyond, digamma, trigamma

_LENT = range(1, 41)
"""The degrees of freedom that similar cells may lend."""
_SURE = 2.0
"""The standard errors by which cells must differ before it counts."""
_UNLIKE = 1e-3
"""The level of the F test at which a cell is noisier than similar ones. That it is quieter, which
few runs that agree by chance also show, must hold at this level for all cells together."""
_UNSEEN = 2.0
"""The number of noisy cells that pass for quiet ones, for each noisy one that is seen."""
_NOISIER, _LOOKS_QUIET = 9.0, 0.25
"""In a single run, a cell is much noisier than another if its range implies a variance this many
times as large, and this share of noisy cells looks quiet (2 of 14 on a simulated device)."""


class CellLogs(msgspec.Struct, frozen=True):
    """Logarithms of a cell's figures by the run's number, in sets. Runs in the same set differ by
    chance only. `kind` is a key that similar cells share."""

    kind: Hashable
    sets: Sequence[Mapping[int, float]] = ()


def spreads(cells: Sequence[CellLogs], left_out: Collection[int] = ()) -> list[Spread | None]:
    """Returns each cell's spread, None if unknown. The runs in `left_out` measured only some cells,
    and show the variation of only these cells, if other runs show that of others."""
    alone = [_own(cell) for cell in cells]
    known = [_own(cell, left_out) for cell in cells] if left_out else alone
    known = known if any(known) else alone
    peers = _Peers([one for one in known if one is not None])
    lent_to = cache(peers.lent)  # cells of a simulated machine may be equal
    lent = [lent_to(cell.kind, one and one.spread) for cell, one in zip(cells, known, strict=True)]
    noisy = sum(
        own.spread.variance > by.variance and _is_unlike(own.spread, by)
        for own, by in zip(known, lent, strict=True)
        if own is not None and by is not None
    )
    doubted, count = min(1.0, _UNSEEN * noisy / max(1, len(cells))), len(cells)
    return [
        _joined(own and own.spread, by, doubted, count) for own, by in zip(alone, lent, strict=True)
    ]


def doubted(cells: Sequence[tuple[Hashable, Spread | None]]) -> list[Spread | None]:
    """Returns the spreads with a second estimate: `alone` is the mean spread of similar, much
    noisier cells, and `doubted` the probability that the cell is as noisy."""
    ranges = grouped((kind, (of.variance, of.degrees)) for kind, of in cells if of is not None)
    kinds = {kind: sorted(own) for kind, own in ranges.items()}

    def of(every: Sequence[tuple[float, float]], own: Spread) -> Spread:
        noisier = every[bisect_right(every, (_NOISIER * own.variance, math.inf)) :]
        if not noisier:
            return own
        variances, degrees = zip(*noisier, strict=True)
        wide = Spread(fmean(variances), median(degrees))
        return Spread(own.variance, own.degrees, wide, _LOOKS_QUIET * len(noisier) / len(every))

    return [own and of(kinds[kind], own) for kind, own in cells]


class _Own(NamedTuple):
    """A cell's own runs: the distance of each from the mean of its set, and what they show."""

    kind: Hashable
    offs: Sequence[tuple[int, float]]
    spread: Spread
    log: float


def _own(cell: CellLogs, left_out: Collection[int] = ()) -> _Own | None:
    offs, degrees = list[tuple[int, float]](), 0
    for every in cell.sets:
        own = {run: every[run] for run in sorted(every) if run not in left_out}
        if len(own) > 1:
            mean = fmean(own.values())
            offs += [(run, log - mean) for run, log in own.items()]
            degrees += len(own) - 1
    if not degrees:
        return None
    spread = Spread(max(sum(off * off for _, off in offs) / degrees, LEAST**2), degrees)
    log = math.log(spread.variance) - digamma(degrees / 2) + math.log(degrees / 2)
    return _Own(cell.kind, offs, spread, log)


def _is_unlike(own: Spread, lent: Spread, count: int = 1) -> bool:
    ratio = own.variance / lent.variance
    if 0.4 < ratio < 2.5:  # as equivalent cells of 40 degrees of freedom often are
        return False
    if ratio > 1:
        return beyond(ratio, own.degrees, lent.degrees) < _UNLIKE
    return beyond(1 / ratio, lent.degrees, own.degrees) < _UNLIKE / count


def _joined(alone: Spread | None, lent: Spread | None, doubted: float, count: int) -> Spread | None:
    if alone is None:
        return lent
    if lent is None or _is_unlike(alone, lent, count):
        return Spread(alone.variance, alone.degrees, alone)
    degrees = lent.degrees + alone.degrees
    variance = lent.variance * lent.degrees + alone.variance * alone.degrees
    return Spread(variance / degrees, degrees, alone, doubted)


class _Peers:
    def __init__(self, known: Sequence[_Own]) -> None:
        kinds = grouped((one.kind, one) for one in known)
        chance = fmean([trigamma(one.spread.degrees / 2) for one in known] or [0.0])
        self._within = _beyond([[one.log for one in own] for own in kinds.values()], chance)
        means = [fmean(one.log for one in own) for own in kinds.values()]
        of_means = fmean([(self._within + chance) / len(own) for own in kinds.values()] or [0.0])
        self._between = _beyond([means], of_means)
        self._equivalent = _correlation(known) ** 2
        self._sums = {kind: (len(of), sum(one.spread.variance for one in of))
                      for kind, of in kinds.items()}  # fmt: skip
        self._logs = {kind: math.log(total / count) for kind, (count, total) in self._sums.items()}
        self._count = len(known)
        self._others = cache(self._of_others)

    def _of_others(self, kind: Hashable) -> tuple[int, float]:
        logs = [log for name, log in self._logs.items() if name != kind]
        return len(logs), fmean(logs)

    def lent(self, kind: Hashable, own: Spread | None) -> Spread | None:
        less, error = (0, 0.0), 1.0
        if own is not None:
            less, error = (1, own.variance), trigamma(own.degrees / 2)
        count, total = self._sums.get(kind, (0, 0.0))
        near, far = count - less[0], self._count - count
        parts = []
        if near:
            doubt = self._within / near + error * max(1 / near, self._equivalent)
            parts.append((doubt, math.log((total - less[1]) / near)))
        if far and len(self._sums) > 1:
            others, mean = self._others(kind)
            doubt = self._between * (1 + 1 / others) + self._within / far
            parts.append((doubt + error * max(1 / far, self._equivalent), mean))
        if not parts:
            return None
        weight = sum(1 / doubt for doubt, _ in parts)
        variance = math.exp(sum(log / doubt for doubt, log in parts) / weight)
        doubt = self._within + max(1 / weight, error * self._equivalent)
        # The logarithm of a scaled inverse χ² with d degrees of freedom has the variance Ψ′(d/2).
        return Spread(variance, max(1, bisect_right(_LENT, -doubt, key=_minus_variance)))


def _minus_variance(degrees: int) -> float:
    return -trigamma(degrees / 2)


def _beyond(groups: Iterable[Sequence[float]], chance: float) -> float:
    squares, degrees = list[float](), 0
    for own in groups:
        mean, part = fmean(own or [0.0]), 1 - 1 / max(1, len(own))
        squares += [(one - mean) ** 2 - chance * part for one in own if len(own) > 1]
        degrees += max(0, len(own) - 1)
    if not degrees:
        return 0.0
    found = sum(squares) / degrees
    error = math.dist(squares, [found] * len(squares)) / degrees
    return max(0.0, found - (_SURE * error if degrees > 1 else 0.0))


def _correlation(known: Sequence[_Own]) -> float:
    scaled = [
        ((one.kind, run), off / deviation)
        for one in known for deviation in (one.spread.deviation,) for run, off in one.offs
    ]  # fmt: skip
    runs, squares = grouped(scaled).values(), sum(off * off for _, off in scaled)
    cells = len(scaled) / max(1, len(runs))
    if cells <= 1 or not squares:
        return 0.0
    # Of cells that agree, a run's sum is as large as its cells are many.
    shared = sum(sum(own) ** 2 for own in runs) / squares
    return max(0.0, (shared - 1) / (cells - 1))

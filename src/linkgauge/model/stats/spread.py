"""Estimates how much a cell's figure varies from run to run, by its own runs and by similar cells.
The variances of similar cells are assumed to follow a scaled inverse χ² (G. Smyth, Statistical
Applications in Genetics and Molecular Biology 3, 2004). docs/intervals.md derives this."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Hashable, Iterable, Mapping, Sequence
from functools import cache
from statistics import fmean, median
from typing import NamedTuple

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


class CellSpread(NamedTuple):
    """The runs of a cell, in sets. In a set, each run is a pair of the run's number and the
    figure's distance from the set's mean. `kind` is a key that similar cells share."""

    kind: Hashable
    sets: tuple[tuple[tuple[int, float], ...], ...] = ()

    @property
    def degrees(self) -> int:
        return sum(len(own) - 1 for own in self.sets)


def varied(kind: Hashable, sets: Iterable[Mapping[int, float]]) -> CellSpread:
    found = []
    for own in sets:
        if len(own) > 1:
            mean = fmean(own.values())
            found.append(tuple((run, own[run] - mean) for run in sorted(own)))
    return CellSpread(kind, tuple(found))


def spreads(
    cells: Sequence[CellSpread], whole: Sequence[CellSpread] | None = None
) -> list[Spread | None]:
    """Returns each cell's spread, None if unknown. `whole` has the same cells with more runs."""
    own_of = cache(_own)  # cells of a simulated machine may be equal
    known = [own_of(cell) for cell in cells]
    peers = _Peers([one for one in known if one is not None])
    alone = known if whole is None else map(own_of, whole)
    lent_to = cache(peers.lent)
    lent = [lent_to(cell.kind, one) for cell, one in zip(cells, known, strict=True)]
    noisy = sum(
        own.spread.variance > by.variance and _is_unlike(own.spread, by)
        for own, by in zip(known, lent, strict=True)
        if own is not None and by is not None
    )
    count = len(cells)
    doubted = min(1.0, _UNSEEN * noisy / max(1, count))
    return [_joined(own, by, doubted, count) for own, by in zip(alone, lent, strict=True)]


def doubted(cells: Sequence[tuple[Hashable, Spread | None]]) -> list[Spread | None]:
    """Returns the spreads with a second estimate: `alone` is the mean spread of similar, much
    noisier cells, and `doubted` the probability that the cell is as noisy."""
    ranges = grouped((kind, (of.variance, of.degrees)) for kind, of in cells if of is not None)
    kinds = {kind: sorted(own) for kind, own in ranges.items()}

    @cache
    def noisier(kind: Hashable, at: int) -> tuple[Spread | None, float]:
        found = kinds[kind][at:]
        if not found:
            return None, 0.0
        variances, degrees = zip(*found, strict=True)
        wide = Spread(fmean(variances), median(degrees))
        return wide, _LOOKS_QUIET * len(found) / len(kinds[kind])

    def of(kind: Hashable, own: Spread) -> Spread:
        at = bisect_right(kinds[kind], (_NOISIER * own.variance, math.inf))
        return Spread(own.variance, own.degrees, *noisier(kind, at))

    return [own and of(kind, own) for kind, own in cells]


class _Own(NamedTuple):
    cell: CellSpread
    spread: Spread
    log: float
    error: float


def _own(cell: CellSpread) -> _Own | None:
    if not cell.degrees:
        return None
    squares, half = sum(off * off for own in cell.sets for _, off in own), cell.degrees / 2
    spread = Spread(max(squares / cell.degrees, LEAST**2), cell.degrees)
    log = math.log(spread.variance) - digamma(half) + math.log(half)
    return _Own(cell, spread, log, trigamma(half))


def _is_unlike(own: Spread, lent: Spread, count: int = 1) -> bool:
    ratio = own.variance / lent.variance
    if 0.4 < ratio < 2.5:  # as equivalent cells of 40 degrees of freedom often are
        return False
    if ratio > 1:
        return beyond(ratio, own.degrees, lent.degrees) < _UNLIKE
    return beyond(1 / ratio, lent.degrees, own.degrees) < _UNLIKE / count


def _joined(own: _Own | None, lent: Spread | None, doubted: float, count: int) -> Spread | None:
    if own is None:
        return lent
    alone = own.spread
    if lent is None or _is_unlike(alone, lent, count):
        return Spread(alone.variance, alone.degrees, alone)
    degrees = lent.degrees + alone.degrees
    variance = lent.variance * lent.degrees + alone.variance * alone.degrees
    return Spread(variance / degrees, degrees, alone, doubted)


class _Peers:
    def __init__(self, known: Sequence[_Own]) -> None:
        kinds = grouped((one.cell.kind, one) for one in known)
        chance = fmean([one.error for one in known] or [0.0])
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

    def lent(self, kind: Hashable, own: _Own | None) -> Spread | None:
        less, error = (0, 0.0), 1.0
        if own is not None:
            less, error = (1, own.spread.variance), own.error
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
        ((one.cell.kind, run), off / one.spread.deviation)
        for one in known
        for own in one.cell.sets
        for run, off in own
    ]
    runs, squares = grouped(scaled).values(), sum(off * off for _, off in scaled)
    cells = len(scaled) / max(1, len(runs))
    if cells <= 1 or not squares:
        return 0.0
    # Of cells that agree, a run's sum is as large as its cells are many.
    shared = sum(sum(own) ** 2 for own in runs) / squares
    return max(0.0, (shared - 1) / (cells - 1))

"""How much the figures of runs vary, of each cell: its own few runs beside those of alike cells.

A comparison has few runs, so that a cell's own variance is known badly, and cells differ in theirs:
what crosses to the host may vary ten times as much as what does not. The variances of cells are
taken as draws from a common distribution, a scaled inverse χ², whose location and width are
estimated from all of them (G. Smyth, Statistical Applications in Genetics and Molecular Biology 3,
2004). Each cell's variance is then the mean of its own and of what its peers let expect, weighted
by degrees of freedom: many where peers agree, few where they differ. Here the location has two
levels: alike cells vary about a value of their own, and these values about one of the comparison.

Figures of one run may be off together (a clock, a moment of the machine). That makes the variances
of cells agree better than they are known: the degrees of freedom that peers lend are limited by
the correlation of the cells' figures.

All of it works on logarithms, so it is relative.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from statistics import fmean

import msgspec

from .student import digamma, trigamma, trigamma_inverse

LEAST = 1e-4
"""Least relative standard deviation of a figure from run to run: finer differences are not told."""
_MOST_LENT = 1e6
_TRUSTED = 0.7
"""Part of the degrees of freedom that peers lend, since how much they differ is an estimate, too.
With all of them, 1.6 % of simulated comparisons of 300 cells that vary by 3 % on average, and among
each other by a factor of 2.7, called a cell worse for nothing; with this part 1.0 %."""


class Spread(msgspec.Struct, frozen=True):
    """A cell's variance between runs (of logarithms), and its degrees of freedom."""

    variance: float
    degrees: float

    @property
    def deviation(self) -> float:
        return math.sqrt(self.variance)


Deviations = Mapping[int, float]
"""By run, how far the logarithm of its figure is from the mean of its set of runs."""


class Varied(msgspec.Struct, frozen=True):
    """What is known of a cell's runs: their deviations, and the degrees of freedom of these; `kind`
    is the same of alike cells."""

    kind: Hashable
    deviations: Deviations
    degrees: int


def deviations(sets: Sequence[Mapping[int, float]]) -> tuple[Deviations, int]:
    """Of the logarithms of figures by run, in sets of runs of which each may have its own mean: the
    deviations from these means, and their degrees of freedom."""
    found: dict[int, float] = {}
    degrees = 0
    for own in sets:
        if len(own) > 1:
            mean = fmean(own.values())
            found |= {run: log - mean for run, log in own.items()}
            degrees += len(own) - 1
    return found, degrees


def spreads(cells: Sequence[Varied], whole: Sequence[Varied] | None = None) -> list[Spread | None]:
    """The spread of each cell; None of one whose own runs tell nothing, and no others'. With
    `whole`, each cell's own runs are those there: more than may count for others."""
    known = [_Known.of(cell) for cell in cells if cell.degrees]
    if not known:
        return [None] * len(cells)
    prior = _Prior(known)
    lent = _lent(cells)
    own = iter(known)
    return [
        prior.spread(
            cell.kind,
            next(own) if cell.degrees else None,
            _Known.of(of) if of.degrees else None,
            lent,
        )
        for cell, of in zip(cells, whole or cells, strict=True)
    ]


class _Known(msgspec.Struct, frozen=True):
    """A cell's own variance, with the estimate of the logarithm of the true one (`log`), whose
    variance is `error`."""

    kind: Hashable
    variance: float
    degrees: int
    log: float
    error: float

    @classmethod
    def of(cls, cell: Varied) -> _Known:
        variance = sum(each * each for each in cell.deviations.values()) / cell.degrees
        variance = max(variance, LEAST**2)
        half = cell.degrees / 2
        log = math.log(variance) - digamma(half) + math.log(half)
        return cls(cell.kind, variance, cell.degrees, log, trigamma(half))


class _Sum(msgspec.Struct):
    """Of alike cells: the sum of weights, and of weighted logarithms."""

    weight: float = 0.0
    logs: float = 0.0

    @property
    def mean(self) -> float:
        return self.logs / self.weight if self.weight else 0.0

    def without(self, weight: float, log: float) -> _Sum:
        left = self.weight - weight
        return _Sum(left, self.logs - weight * log) if left > 1e-9 * self.weight else _Sum()


class _Prior:
    """The distribution of variances: within a kind their logarithms vary by `within`, those of
    kinds by `between` (null of a single kind: nothing tells)."""

    def __init__(self, known: Sequence[_Known]) -> None:
        self._within = _within(known)
        self._kinds: dict[Hashable, _Sum] = {}
        for cell in known:
            kind, weight = self._kinds.setdefault(cell.kind, _Sum()), self._weight(cell)
            kind.weight += weight
            kind.logs += weight * cell.log
        self._between = _between(tuple(self._kinds.values()))
        self._all = _Sum()
        for kind in self._kinds.values():
            weight = self._weight_of(kind)
            self._all.weight += weight
            self._all.logs += weight * kind.mean

    def _weight(self, cell: _Known) -> float:
        return 1 / (self._within + cell.error)

    def _weight_of(self, kind: _Sum) -> float:
        return 0.0 if self._between is None else 1 / (self._between + 1 / kind.weight)

    def spread(
        self, name: Hashable, cell: _Known | None, own: _Known | None, lent: float
    ) -> Spread | None:
        """The cell's spread; null if it has no runs, and no alike cell. Peers lend at most so many
        degrees of freedom; `own` is what it has itself, `cell` the part of it that peers know."""
        kind = self._kinds.get(name)
        others, peers = self._all, _Sum()
        if kind is not None:
            others = others.without(self._weight_of(kind), kind.mean)
            peers = kind if cell is None else kind.without(self._weight(cell), cell.log)
        far = 0.0
        if others.weight and self._between is not None:
            far = 1 / (self._between + 1 / others.weight)
        precision = peers.weight + far
        if not precision:
            return None if own is None else Spread(own.variance, own.degrees)
        log = (peers.logs + far * others.mean) / precision
        half = trigamma_inverse(float(f"{self._within + 1 / precision:.3g}"))
        expected = math.exp(log + digamma(half) - math.log(half))
        degrees = min(_TRUSTED * 2 * half, lent, _MOST_LENT)
        if own is None:
            return Spread(expected, degrees)
        every = degrees + own.degrees
        return Spread((degrees * expected + own.degrees * own.variance) / every, every)


def _within(known: Sequence[_Known]) -> float:
    """The variance of the logarithms of true variances of alike cells: the lesser of two estimates.
    That by the logarithms of cells' variances (Smyth's) holds however much cells differ, but errs
    by twice as much as that by the variances themselves where they hardly do."""
    kinds: dict[Hashable, list[_Known]] = {}
    for cell in known:
        kinds.setdefault(cell.kind, []).append(cell)
    degrees = len(known) - len(kinds)
    if not degrees:
        return 0.0
    squares = excess = scale = 0.0
    for cells in kinds.values():
        mean = fmean(cell.log for cell in cells)
        squares += sum((cell.log - mean) ** 2 for cell in cells)
        own = _excess(cells)
        excess, scale = excess + own[0], scale + own[1]
    by_logs = squares / degrees - fmean(cell.error for cell in known)
    by_squares = math.log1p(max(0.0, excess / scale))
    return max(0.0, min(by_logs, by_squares))


def _excess(cells: Sequence[_Known]) -> tuple[float, float]:
    """By how much the squares of relative deviations of variances exceed what chance makes of equal
    ones (those of shares of a sum of χ², which are beta-distributed), and that of a relative
    variance of 1 of the true ones."""
    count, degrees = len(cells), fmean(cell.degrees for cell in cells)
    mean = fmean(cell.variance for cell in cells)
    squares = sum((cell.variance / mean - 1) ** 2 for cell in cells)
    by_chance = count * (count - 1) / (count * degrees / 2 + 1)
    return squares - by_chance, (count - 1) * (1 + 2 / degrees)


def _between(kinds: Sequence[_Sum]) -> float | None:
    """That of the means of kinds."""
    if len(kinds) < 2:
        return None
    means = [kind.mean for kind in kinds]
    middle = fmean(means)
    squares = sum((mean - middle) ** 2 for mean in means) / (len(kinds) - 1)
    return max(0.0, squares - fmean(1 / kind.weight for kind in kinds))


def _lent(cells: Sequence[Varied]) -> float:
    """The most degrees of freedom that the variance of many cells has if their figures are
    correlated: the squares of correlated values are correlated by the square of it (F.
    Satterthwaite, Biometrics Bulletin 2, 1946, for the degrees of freedom of such a sum)."""
    kinds: dict[Hashable, list[Varied]] = {}
    for cell in cells:
        if cell.degrees:
            kinds.setdefault(cell.kind, []).append(cell)
    every = [cell for own in kinds.values() for cell in own]
    degrees = fmean(cell.degrees for cell in every)
    shared = max(_correlation([every]), _correlation(list(kinds.values())))
    return degrees / shared**2 if shared > 1e-3 else _MOST_LENT


def _correlation(groups: Sequence[Sequence[Varied]]) -> float:
    """The intraclass correlation of the figures of a run within these groups of cells, by the
    analysis of variance (R. Fisher, Statistical Methods for Research Workers, 1925, chapter 7).
    Each cell counts alike, however much it varies."""
    shared = rest = 0.0
    cells = free = 0
    for group in groups:
        runs = {run for cell in group for run in cell.deviations}
        whole = [_scaled(cell) for cell in group if len(cell.deviations) == len(runs)]
        if len(whole) < 2:
            continue
        sums = sum(sum(one[run] for one in whole) ** 2 for run in runs)
        squares = sum(value * value for one in whole for value in one.values())
        shared += sums / len(whole)
        rest += squares - sums / len(whole)
        free += group[0].degrees
        cells += group[0].degrees * (len(whole) - 1)
    if not free or not cells:
        return 0.0
    size = 1 + cells / free
    between, within = shared / free, rest / cells
    whole_variance = between + (size - 1) * within
    return max(0.0, (between - within) / whole_variance) if whole_variance > 0 else 0.0


def _scaled(cell: Varied) -> dict[int, float]:
    """With a standard deviation of 1."""
    squares = sum(each * each for each in cell.deviations.values())
    scale = math.sqrt(cell.degrees / squares) if squares > 0 else 0.0
    return {run: each * scale for run, each in cell.deviations.items()}

"""Estimates how much the figures of runs vary in each cell, from its own few runs and those of
similar cells.

A comparison has few runs, so the variance of a single cell is poorly known. Cells also differ:
transfers to the host may vary ten times as much as others. The variances of cells are treated as
draws from a common distribution, a scaled inverse χ². All cells together determine its location and
width (G. Smyth, Statistical Applications in Genetics and Molecular Biology 3, 2004). A cell's
variance is then the mean of its own variance and of the variance that its peers suggest. The
weights are degrees of freedom: the peers have many if they agree, and few if they differ. Two
things differ from Smyth. First, similar cells have a location of their own, and these locations
vary about a common one. Second, how unlike cells are is estimated from products of different runs
(`cross_runs`), because outlying runs make similar cells look different.

A few cells may vary much more than all others, and no common distribution describes them. If a
cell's own runs show this, its peers count less. If there are such cells, any cell is called
different only if its own runs show the difference as well. The level of that test accounts only for
the number of such cells.

All figures of a run may be off together, for example because of a clock. The variances of cells
then agree better than their precision suggests. The correlation of their errors is the square of
the figures' correlation.

All computations use logarithms, so variances are relative."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from functools import cache
from statistics import fmean, variance
from typing import NamedTuple

import msgspec

from linkgauge.model.grouped import grouped

from .cross_runs import Gram, Kind, KindsTogether, added, gram, square, square_of, unlikeness
from .student import digamma, trigamma, trigamma_inverse

LEAST = 1e-4
"""The least relative standard deviation of a figure from run to run. Smaller differences are not
distinguished."""
_MOST_LENT = 100.0
_TRUSTED = 0.6
"""The part of the peers' degrees of freedom that counts, because how much peers differ is an
estimate, too."""
_FAR = 2.5
"""A cell counts as unlike its peers if it varies more than expected by this many standard errors.
These four numbers were chosen by simulation (docs/gate-errors.md)."""
_FAR_BELOW = 6.0
"""The standard errors for a cell that varies less than expected. Few runs agree by chance more
often than they are far off."""
_TAILS = 1.5
"""The factor by which outlying runs may make variances larger than their logarithms suggest."""
_UNSEEN = 2.0
"""The number of unnoticed cells that are unlike their peers, for each such cell that is noticed."""


class Spread(msgspec.Struct, frozen=True):
    """The variance of a cell between runs (of logarithms), with its degrees of freedom. `alone` is
    the variance from the cell's own runs. `doubted` is the share of all cells for which only
    `alone` may be valid."""

    variance: float
    degrees: float
    alone: Spread | None = None
    doubted: float = 0.0

    @property
    def deviation(self) -> float:
        return math.sqrt(self.variance)


class CellSpread(msgspec.Struct, frozen=True):
    """The deviations of a cell's runs. `runs` has the numbers of the runs of each set. `sets` has,
    for each run, the distance of the logarithm of its figure from the mean of its set. `kind` is
    equal for similar cells."""

    kind: Hashable
    runs: tuple[tuple[int, ...], ...] = ()
    sets: tuple[tuple[float, ...], ...] = ()

    @property
    def degrees(self) -> int:
        return sum(map(len, self.sets)) - len(self.sets)

    @property
    def deviations(self) -> list[float]:
        return [each for own in self.sets for each in own]


def varied(kind: Hashable, sets: Iterable[Mapping[int, float]]) -> CellSpread:
    """Returns how far a cell's figures deviate from the mean of their set of runs. The figures are
    logarithms, by the number of the run."""
    runs, deviations = list[tuple[int, ...]](), list[tuple[float, ...]]()
    for own in sets:
        if len(own) > 1:
            mean = fmean(own.values())
            runs.append(tuple(sorted(own)))
            deviations.append(tuple(own[run] - mean for run in runs[-1]))
    return CellSpread(kind, tuple(runs), tuple(deviations))


def spreads(
    cells: Sequence[CellSpread], whole: Sequence[CellSpread] | None = None
) -> list[Spread | None]:
    """Returns the variation of each cell between runs. Returns None for a cell if neither its own
    runs nor other cells show any. `whole` has more runs of each cell, which count for that cell
    only."""
    variance_of = cache(_KnownVariance.of)  # cells of a simulated machine may be equal
    known = [variance_of(cell) for cell in cells]
    there = [one for one in known if one is not None]
    if not there:
        return [None] * len(cells)
    prior = _Prior(there)
    lent_to = cache(prior.lent)
    lent = [lent_to(cell.kind, one) for cell, one in zip(cells, known, strict=True)]
    unlike = [
        one is not None and by is not None and by.unlikeness(one) > by.apart
        for one, by in zip(known, lent, strict=True)
    ]
    own = known if whole is None else map(variance_of, whole)
    every, of_all = zip(lent, own, unlike, strict=True), sum(unlike)
    return [_spread(by, of, (of_all - is_one) / len(cells)) for by, of, is_one in every]


def _spread(by: _Lent | None, own: _KnownVariance | None, others: float) -> Spread | None:
    """Returns the variation of a cell between runs. `others` is the share of the other cells whose
    own runs vary more than their peers suggest."""
    if own is None:
        return None if by is None else Spread(by.variance, by.degrees(0.0))
    alone = Spread(own.variance, own.degrees)
    if by is None:
        return alone
    lent, known = by.to(own)
    every = lent + own.degrees
    variance = (lent * known + own.degrees * own.variance) / every
    return Spread(variance, every, alone, min(1.0, _UNSEEN * others))


class _KnownVariance(NamedTuple):
    """The variance of a cell by its own runs. `squares` is the sum of the squared deviations.
    `square` is the square of the variance by products of different runs; None for too few runs. For
    normally distributed runs, `log` is the expected logarithm of the true variance. `error` is the
    variance of `log`."""

    cell: CellSpread
    degrees: int
    squares: float
    square: float | None
    variance: float
    log: float
    error: float

    @classmethod
    def of(cls, cell: CellSpread) -> _KnownVariance | None:
        """Returns None if no set of runs has two."""
        degrees = cell.degrees
        if not degrees:
            return None
        squares = sum(each * each for each in cell.deviations)
        variance = max(squares / degrees, LEAST**2)
        half = degrees / 2
        log = math.log(variance) - digamma(half) + math.log(half)
        return cls(cell, degrees, squares, square_of(cell.sets), variance, log, trigamma(half))

    @property
    def kind(self) -> Hashable:
        return self.cell.kind

    @property
    def steady(self) -> float:
        """An estimate of the variance that a single outlying run hardly enlarges."""
        return self.variance if self.square is None else math.sqrt(max(self.square, LEAST**4))

    @property
    def scaled(self) -> list[float]:
        """The deviations, scaled to a standard deviation of 1."""
        scale = math.sqrt(self.degrees / self.squares) if self.squares > 0 else 0.0
        return [each * scale for each in self.cell.deviations]


class _Lent(msgspec.Struct, frozen=True):
    """The variance that a cell's peers suggest. `apart` is how far the true variance may be from
    it, as a variance of logarithms."""

    variance: float
    apart: float

    def unlikeness(self, own: _KnownVariance) -> float:
        """Returns how much the cell may differ from its peers. This is `apart`, or more if the cell
        varies more than chance explains."""
        far = math.log(max(1.0, own.steady / self.variance))
        return max(self.apart, far * far - _FAR * _FAR * (own.error + self.apart))

    def to(self, own: _KnownVariance) -> tuple[float, float]:
        """Returns the degrees of freedom and the variance that the peers add to the cell's own. If
        the cell varies much less than its peers, the added variance is close to the cell's own."""
        far = math.log(max(1.0, self.variance / own.variance))
        known = own.error + self.apart
        if far * far <= _FAR_BELOW * _FAR_BELOW * known:
            return self.degrees(self.unlikeness(own)), self.variance
        apart = far * far - known
        return self.degrees(apart), own.variance * math.exp(far * own.error / (own.error + apart))

    def degrees(self, apart: float) -> float:
        """Returns the degrees of freedom of the scaled inverse χ² whose logarithm has the variance
        `apart`."""
        known = max(apart, self.apart, 1e-3)
        return _TRUSTED * min(_MOST_LENT, 2 * trigamma_inverse(float(f"{known:.3g}")))


class _WeightedSum(NamedTuple):
    """Weighted sums over similar cells or over kinds. `weight` is the sum of the weights.
    `variances` and `logs` are the weighted sums of the variances and of their logarithms."""

    weight: float = 0.0
    variances: float = 0.0
    logs: float = 0.0
    members: int = 0

    @property
    def log(self) -> float:
        return self.logs / self.weight

    @property
    def mean(self) -> float:
        """The mean variance. A few very noisy cells cannot dominate it, because the mean of the
        logarithms limits it."""
        return min(self.variances / self.weight, _TAILS * math.exp(self.log))

    def plus(self, weight: float, variance: float, log: float, members: int = 1) -> _WeightedSum:
        return _WeightedSum(
            self.weight + weight,
            self.variances + weight * variance,
            self.logs + weight * log,
            self.members + members,
        )

    def without(self, weight: float, variance: float, log: float) -> _WeightedSum:
        return self.plus(-weight, variance, log, -1) if self.members > 1 else _WeightedSum()


class _Prior:
    """The distribution of variances. `_within` is how much the logarithms of variances vary within
    a kind of cells, and `_between` how much they vary between kinds. `_between` is null for a
    single kind."""

    def __init__(self, known: Sequence[_KnownVariance]) -> None:
        self._within, self._between = _unlikeness(known)
        # Errors of variances are correlated by the squares of the correlations of figures.
        kinds = _by_kind(known)
        shared = _correlation([known]) ** 2, _correlation(kinds.values()) ** 2
        error = fmean(one.error for one in known)
        self._of_all, self._of_kind = error * shared[0], error * max(shared)
        self._kinds: dict[Hashable, _WeightedSum] = {}
        for one in known:
            kind = self._kinds.get(one.kind, _WeightedSum())
            self._kinds[one.kind] = kind.plus(self._weight(one), one.variance, one.log)
        self._all = _WeightedSum()
        for kind in self._kinds.values():
            self._all = self._all.plus(self._weight_of(kind), kind.mean, kind.log)

    def _weight(self, one: _KnownVariance) -> float:
        return 1 / (self._within + one.error)

    def _weight_of(self, kind: _WeightedSum) -> float:
        return 1 / ((self._between or 0.0) + 1 / kind.weight)

    def lent(self, name: Hashable, one: _KnownVariance | None) -> _Lent | None:
        """Returns the variance that a cell's peers suggest, or None for a cell without peers.
        `name` is the cell's kind, and `one` its own variance."""
        kind = self._kinds.get(name, _WeightedSum())
        others, peers = self._all, kind
        if kind.members:
            others = others.without(self._weight_of(kind), kind.mean, kind.log)
        if one is not None:
            peers = kind.without(self._weight(one), one.variance, one.log)
        near = far = 0.0
        if peers.members:
            near = 1 / (1 / peers.weight + self._of_kind * (1 - 1 / peers.members))
        if others.members and self._between is not None:
            far = 1 / (self._between + 1 / others.weight + self._of_all)
        precision = near + far
        if not precision:
            return None
        parts = [(near, peers), (far, others)]
        variance = sum(part * own.mean for part, own in parts if part) / precision
        return _Lent(variance, self._within + max(1 / precision, self._of_all))


def _by_kind(known: Iterable[_KnownVariance]) -> dict[Hashable, list[_KnownVariance]]:
    return grouped((one.kind, one) for one in known)


def _unlikeness(known: Sequence[_KnownVariance]) -> tuple[float, float | None]:
    """Returns how much variances differ within a kind of cells, and between kinds. With too few
    runs for products of different runs, the variances themselves are compared."""
    patterns = grouped((one.cell.runs, one) for one in known)
    by_runs = unlikeness([_together(own) for own in patterns.values() if own[0].square is not None])
    by_logs = _by_logs(known)
    within = by_logs[0] if by_runs.within is None else by_runs.within
    return within, by_logs[1] if by_runs.between is None else by_runs.between


def _together(known: Iterable[_KnownVariance]) -> KindsTogether:
    """Returns the kinds of these cells. All cells must have the same runs."""
    kinds, grams = list[Kind](), list[Gram]()
    for own in _by_kind(known).values():
        grams.append(gram([one.cell.sets for one in own]))
        squares = sum(one.square or 0.0 for one in own)
        variance = fmean(one.variance for one in own)
        kinds.append(Kind(len(own), squares, square(grams[-1]) or 0.0, variance, own[0].error))
    return KindsTogether(kinds, square(added(grams)) or 0.0)


def _by_logs(known: Sequence[_KnownVariance]) -> tuple[float, float | None]:
    """Returns how much the logarithms of variances differ beyond chance, within kinds and between
    kinds (Smyth's estimate)."""
    kinds = grouped((one.kind, one.log) for one in known)
    means = [fmean(logs) for logs in kinds.values()]
    error = fmean(one.error for one in known)
    degrees, within = len(known) - len(kinds), 0.0
    if degrees:
        squares = sum(
            sum((log - mean) ** 2 for log in logs)
            for logs, mean in zip(kinds.values(), means, strict=True)
        )
        within = max(0.0, squares / degrees - error)
    if len(means) < 2:
        return within, None
    chance = fmean((within + error) / len(logs) for logs in kinds.values())
    return within, max(0.0, variance(means) - chance)


def _correlation(groups: Iterable[Sequence[_KnownVariance]]) -> float:
    """Returns the intraclass correlation of the figures of a run within groups of cells, by the
    analysis of variance (R. Fisher, Statistical Methods for Research Workers, 1925, chapter 7).
    Each cell has the same weight, however much it varies."""
    shared = rest = 0.0
    cells = free = 0
    for group in groups:
        patterns = {one.cell.runs for one in group}
        runs = len({run for sets in patterns for own in sets for run in own})
        whole = [one.scaled for one in group if one.degrees + len(one.cell.sets) == runs]
        if len(whole) < 2:
            continue
        sums = sum(sum(by_run) ** 2 for by_run in zip(*whole, strict=True))
        squares = sum(value * value for one in whole for value in one)
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

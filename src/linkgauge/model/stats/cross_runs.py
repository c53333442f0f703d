"""Estimates how much the true variances of cells differ, from products over different runs.

An outlying run makes several squared deviations large at once. With heavy tails, variances from few
runs therefore differ much, even among cells whose true variances are equal. Two disjoint pairs of
runs are independent. The mean of (y_a - y_b)²/2 × (y_c - y_d)²/2 over different runs a, b, c, d is
therefore σ⁴ without bias, whatever the distribution (J. Tukey's polykay k₂₂, Annals of Mathematical
Statistics 27, 1956). If the first factor is of one cell and the second of another cell, the mean is
σ₁² σ₂², however the cells of a run are correlated. The mean difference between σ⁴ and σ₁² σ₂² over
cells is the variance of σ² among cells."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from operator import mul
from statistics import fmean
from typing import NamedTuple

Deviation = Sequence[float]
"""The distances of the runs of one set from their mean."""
Gram = list[list[list[float]]]
"""For each set of runs, the sum over cells of products of two runs' deviations."""
_WITHIN, _BETWEEN = 2.0, 0.5
"""The standard errors that unlikeness must exceed before it counts. In simulations with the noise
recorded on two H200s, alike cells seem unlike by one standard error in every sixth comparison,
which costs the power of all. Cells that are truly unlike but not recognized are also judged by
themselves (`spread`), but kinds are not."""
_VERY = 5.0
"""The unlikeness that counts if chance leaves no mean to compare with."""


class Unlikeness(NamedTuple):
    """How much the variances σ² of cells differ: the variance of the logarithm of σ² within a kind
    of cells, and between kinds. Null is unknown."""

    within: float | None
    between: float | None


def gram(cells: Sequence[Sequence[Deviation]]) -> Gram:
    """Returns the Gram matrices of cells that have the same runs in the same sets."""
    return [
        [[sum(map(mul, one, other)) for other in by_run] for one in by_run]
        for by_run in ([*zip(*own, strict=True)] for own in zip(*cells, strict=True))
    ]


def added(grams: Iterable[Gram]) -> Gram:
    """Returns the sum of Gram matrices, which is the Gram matrix of all their cells together."""
    return [
        [[sum(values) for values in zip(*rows, strict=True)] for rows in zip(*own, strict=True)]
        for own in zip(*grams, strict=True)
    ]


def square(of: Gram) -> float | None:
    """Returns the square of the sum of the cells' variances, as the mean product over all disjoint
    pairs of runs. Returns None if there are no two disjoint pairs."""
    total = count = 0.0
    sums = list[tuple[float, int]]()
    for own in of:
        runs = len(own)
        each = [row[at] for at, row in enumerate(own)]
        trace = sum(each)
        # By inclusion and exclusion of equal runs from the sum over all pairs of pairs.
        total += trace * trace * (runs * runs - 3 * runs + 1)
        total -= runs * (runs - 1) * sum(one * one for one in each)
        total += 2 * sum(value * value for row in own for value in row)
        count += runs * (runs - 1) * (runs - 2) * (runs - 3)
        sums.append((runs * trace, runs * (runs - 1)))
    whole, pairs = sum(one for one, _ in sums), sum(number for _, number in sums)
    total += whole * whole - sum(one * one for one, _ in sums)
    count += pairs * pairs - sum(number * number for _, number in sums)
    return total / count if count else None


def square_of(cell: Sequence[Deviation]) -> float | None:
    """Returns the square of one cell's variance, as the mean product over disjoint pairs of
    runs."""
    total = count = 0.0
    whole = pairs = 0.0
    for own in cell:
        runs = len(own)
        squares = [each * each for each in own]
        trace = sum(squares)
        total += trace * trace * (runs * runs - 3 * runs + 3)
        total -= runs * (runs - 1) * sum(each * each for each in squares)
        count += runs * (runs - 1) * (runs - 2) * (runs - 3)
        # Of two sets: less what a set has with itself.
        total -= (runs * trace) ** 2
        count -= (runs * (runs - 1)) ** 2
        whole, pairs = whole + runs * trace, pairs + runs * (runs - 1)
    total, count = total + whole * whole, count + pairs * pairs
    return total / count if count else None


class Kind(NamedTuple):
    """Similar cells with the same runs. `cells` is their number. `squares` is the sum of the
    squares of their variances, and `square` the square of the sum."""

    cells: int
    squares: float
    square: float
    variance: float
    error: float

    @property
    def product(self) -> float:
        """The mean product of the variances of two cells; for a single cell, the square of its
        variance."""
        if self.cells == 1:
            return self.squares
        return (self.square - self.squares) / (self.cells * (self.cells - 1))


class KindsTogether(NamedTuple):
    """The kinds of cells that have the same runs. `square` is the square of the sum of all cells'
    variances."""

    kinds: Sequence[Kind]
    square: float

    @property
    def product(self) -> float | None:
        """The mean product of the variances of two cells of different kinds; None for a single
        kind."""
        sizes = [kind.cells for kind in self.kinds]
        pairs = sum(sizes) ** 2 - sum(size * size for size in sizes)
        if not pairs:
            return None
        return (self.square - sum(kind.square for kind in self.kinds)) / pairs


def unlikeness(found: Sequence[KindsTogether]) -> Unlikeness:
    """Returns how much the variances of all cells differ. The cells of one item of `found` have the
    same runs."""
    between = _between(found)
    return Unlikeness(_within(found, between or 0.0), between)


def _between(found: Sequence[KindsTogether]) -> float | None:
    apart, level = list[float](), list[float]()
    for one in found:
        product = one.product
        if product is not None:
            apart += [kind.product - product for kind in one.kinds]
            level += [product] * len(one.kinds)
    return _ratio(apart, level, _BETWEEN, centred=True) if apart else None


def _within(found: Sequence[KindsTogether], between: float) -> float | None:
    """Returns the variance of σ² within kinds, relative to each kind's level. If kinds differ
    little, their levels are moved towards the common level."""
    apart, level = list[float](), list[float]()
    middle = fmean(kind.variance for one in found for kind in one.kinds) if found else 0.0
    for kind in (kind for one in found for kind in one.kinds if kind.cells > 1):
        own = between / (between + kind.error / kind.cells)
        scale = (own * kind.variance + (1 - own) * middle) ** 2
        apart.append((kind.squares / kind.cells - kind.product) / scale)
        level.append(max(0.0, kind.product) / scale)
    return _ratio(apart, level, _WITHIN) if apart else None


def _ratio(
    apart: Sequence[float], level: Sequence[float], errors: float, *, centred: bool = False
) -> float:
    """Returns the variance of the logarithm of σ², for a lognormal distribution. `apart` is the
    variance of σ², and `level` the square of its mean."""
    if sum(level) <= 0:
        return _VERY
    ratio = sum(apart) / sum(level)
    middle = fmean(apart)
    rest = [one - (middle if centred else ratio * of) for one, of in zip(apart, level, strict=True)]
    error = math.sqrt(sum(one * one for one in rest)) / sum(level)
    return math.log1p(max(0.0, ratio - errors * error))

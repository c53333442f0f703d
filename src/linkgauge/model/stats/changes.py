"""Tests whether two sets of runs differ, by the logarithms of their medians. Holm's p (Scandinavian
Journal of Statistics 6, 1979) bounds the chance that any unchanged cell is called different."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Sequence
from operator import attrgetter
from typing import Literal, TypeVar

import msgspec
from msgspec.structs import replace

from ..units import Better
from .moments import LEAST, Spread
from .student import critical, shift_found, two_sided

_C = TypeVar("_C", bound=msgspec.Struct)
Direction = Literal["better", "worse", "same", "unknown"]
"""A change is `better` or `worse` if it is proven, `same` if it is not, and `unknown` if there are
too few runs or figures to tell."""
ChangedTo = Literal["better", "worse"]
Basis = Literal["runs", "within"]
"""The basis on which a difference is judged: the variation between runs, or the intervals of single
runs."""
POWER = 0.9
"""The probability with which a loss is found. A proven loss counts if its interval reaches the
least loss, which that of a true loss of this size does in 97.5 of 100 cases."""
_ALL = 1 - 1e-12
"""The largest loss of a rate, or gain of a time, that has a logarithm: all but nothing."""
MOST_RUNS = 100
"""The most runs that a comparison asks for, because the machine drifts during more."""
ENOUGH = 5
"""The degrees of freedom from which on a cell's own runs show how much it varies, if both sides
have several."""
FEW = 2
"""With fewer degrees of freedom, a mean has no interval."""


class RunChange(msgspec.Struct, frozen=True):
    """The change of a figure between two sets of runs.

    ratio: The second figure divided by the first.
    low: The low end of the ratio's 95 % interval.
    high: The high end of the ratio's 95 % interval.
    p: The probability of a difference at least this clear if nothing changed, for this cell alone.
    holm: `p` adjusted for all cells that were compared.
    basis: The evidence: the variation between runs, or the intervals of single runs (`within`).
    deviation: The relative standard deviation from run to run.
    degrees: The degrees of freedom of the deviation."""

    ratio: float
    low: float
    high: float
    p: float
    holm: float
    basis: Basis
    deviation: float
    degrees: float


class Side(msgspec.Struct, frozen=True):
    """One cell's runs on one side of a comparison. `logs` are the logarithms of the runs' figures.
    `within` is the variance that the runs' ranges imply; None if a run has no range."""

    logs: tuple[float, ...]
    within: Spread | None = None

    @property
    def mean(self) -> float:
        return sum(self.logs) / len(self.logs)


class SideTest(RunChange, frozen=True, kw_only=True):
    """The change of one cell, and how it was tested. `error` is the standard error of the ratio's
    logarithm. `doubt` is None, or allows for some cells that vary more than their runs show: the
    standard error and the degrees of freedom of such a cell, and the share of such cells."""

    sides: tuple[Side, Side]
    error: float
    doubt: tuple[float, float, float] | None = None


def within(low: float, high: float, coverage: float, degrees: float) -> Spread:
    """Returns a figure's variance, from the range that holds `coverage` of other runs' figures."""
    half = (math.log(high) - math.log(low)) / 2
    deviation = max(half / critical(1 - coverage, degrees) / math.sqrt(2), LEAST)
    return Spread(deviation * deviation, degrees)


def compare_sides(first: Side, second: Side, spread: Spread | None) -> SideTest | None:
    """Tests whether a figure differs between two sides, as if no other cell were compared. Returns
    None if its variation is unknown."""
    log, counts = second.mean - first.mean, (len(first.logs), len(second.logs))
    alone = None if spread is None else spread.alone
    # A single run that is far off is no better known because the others agree.
    is_known = alone is not None and alone.degrees >= ENOUGH and min(counts) > 1
    known: tuple[Spread, ...]
    if first.within is not None and second.within is not None and not is_known:
        known = tuple(_with_runs(own, spread) for own in (first.within, second.within))
        error, wide = _welch(known, counts), _welch([of.alone or of for of in known], counts)
    elif spread is None:
        return None
    else:
        scale = math.sqrt(1 / counts[0] + 1 / counts[1])
        known = (spread,)
        error, wide = ((of.deviation * scale, of.degrees) for of in (spread, alone or spread))
    reach, p, doubt = critical(0.05, error[1]) * error[0], two_sided(log / error[0], error[1]), None
    if doubted := max(of.doubted for of in known):
        doubt = (*wide, doubted)
        p = max(p, doubted * two_sided(log / wide[0], wide[1]))
    basis: Basis = "within" if spread is None else "runs"
    ends, deviation = (_exp(log - reach), _exp(log + reach)), max(of.deviation for of in known)
    change = math.exp(log), *ends, p, p, basis, deviation, error[1]
    return SideTest(*change, sides=(first, second), error=error[0], doubt=doubt)


def _with_runs(own: Spread, runs: Spread | None) -> Spread:
    if runs is None:
        return own
    degrees, variance = own.degrees, own.variance
    if (alone := runs.alone) is not None:
        degrees += alone.degrees
        variance = (own.variance * own.degrees + alone.variance * alone.degrees) / degrees
    return Spread(max(own.variance, variance, runs.variance), degrees, own.alone, own.doubted)


def _welch(spreads: Sequence[Spread], counts: tuple[int, int]) -> tuple[float, float]:
    parts = [(own.variance / n, own.degrees) for own, n in zip(spreads, counts, strict=True)]
    variance = sum(part for part, _ in parts)
    degrees = variance**2 / sum(part**2 / of for part, of in parts)
    return math.sqrt(variance), max(1.0, math.floor(degrees))


def holm(p: Sequence[float]) -> list[float]:
    order = sorted(range(len(p)), key=p.__getitem__)
    adjusted, least = [1.0] * len(p), 0.0
    for at, number in enumerate(order):
        least = max(least, min(1.0, p[number] * (len(p) - at)))
        adjusted[number] = least
    return adjusted


def adjusted(changes: Sequence[_C | None]) -> list[_C | None]:
    """Returns changes of cells that are compared together, with Holm's p."""
    ps = iter(holm(list(map(attrgetter("p"), filter(None, changes)))))
    return [one and replace(one, holm=next(ps)) for one in changes]


def _exp(log: float) -> float:
    return math.exp(max(-300.0, min(300.0, log)))


def changed_to(ratio: float, better: Better) -> ChangedTo:
    return "better" if (ratio > 1) == (better == "higher") else "worse"


def loss(ratio: float, better: Better) -> float:
    """Returns the loss as a fraction; `ratio` is figure ÷ reference. A gain is negative."""
    return 1 - ratio if better == "higher" else ratio - 1


def largest_loss(change: RunChange, better: Better) -> float:
    return loss(change.low if better == "higher" else change.high, better)


def log_of_loss(fraction: float, better: Better) -> float:
    if better == "higher":
        return -math.log1p(-min(fraction, _ALL))
    return math.log1p(max(fraction, -_ALL))


def loss_of_log(log: float, better: Better) -> float:
    return -math.expm1(-log) if better == "higher" else math.expm1(min(log, 300.0))


class Aim(msgspec.Struct, frozen=True):
    """What a comparison should find, and what counts as proven.

    significance: Holm's p must be below this.
    least: The least loss that counts, as a fraction.
    detect: The true loss that the runs should suffice to find, as a fraction.
    exclude: The loss that a conclusive comparison must rule out, as a fraction."""

    significance: float = 0.01
    least: float = 0.03
    detect: float = 0.06
    exclude: float = 0.5


def proven(change: RunChange, aim: Aim, better: Better) -> ChangedTo | None:
    return changed_to(change.ratio, better) if change.holm < aim.significance else None


class Needed(msgspec.Struct, frozen=True):
    """The loss that the runs of a comparison can find.

    detectable: The smallest true loss that the runs find with a probability of 90 %, as a fraction.
    more: How many more runs each side needs to find the loss of the Aim; null if more than 100."""

    detectable: float
    more: tuple[int, int] | None


def needed(one: SideTest, aim: Aim, cells: int, better: Better) -> Needed:
    """Returns the loss that the runs can find, and how many more runs can find `aim.detect`."""
    found = detectable(one, aim, cells, better)
    if found <= aim.detect:
        return Needed(found, (0, 0))
    first, second = (len(side.logs) for side in one.sides)

    def suffices(more: tuple[int, int]) -> bool:
        variance = 1 / (first + more[0]) + 1 / (second + more[1])
        scale = math.sqrt(variance / (1 / first + 1 / second))
        return detectable(one, aim, cells, better, scale, sum(more)) <= aim.detect

    tried = range(MOST_RUNS + 1)
    # On the second side alone or, if that does not suffice, until both sides have as many.
    for more in (
        [(0, n) for n in tried],
        [(max(n - first, 0), max(n - second, 0)) for n in tried],
    ):
        least = bisect_left(more, True, key=suffices)
        if least <= MOST_RUNS:
            return Needed(found, more[least])
    return Needed(found, None)


def detectable(
    one: SideTest, aim: Aim, cells: int, better: Better, scale: float = 1.0, more: int = 0
) -> float:
    """Returns the smallest loss that a test of `cells` cells finds with probability `POWER`."""
    own = one.error, one.degrees, 1.0
    found = [own] if one.doubt is None else [own, one.doubt]
    clear = max(
        shift_found(min(0.5, aim.significance / (cells * part)), degrees + more, POWER) * error
        for error, degrees, part in found
    )
    return loss_of_log(max(clear * scale, log_of_loss(aim.least, better)), better)

"""Finds parts that slow all of their cells by so little that no single cell shows it, but all cells
together do.

A cell's value is the logarithm of its figure relative to the mean of its peers. The loss of a part
is the mean difference between cells with and without the part. The differences are weighted by how
little such cells scatter, and Student's t tests the loss."""

from __future__ import annotations

import math
import statistics
from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from operator import mul
from typing import NamedTuple

from linkgauge.model.grouped import grouped
from linkgauge.model.hardware.part import Part
from linkgauge.model.stats.student import two_sided

from .relative_rates import RelativeRate, noise_of, scatter_of
from .slow_model import weighted_median

LEAST = 0.025
"""Loss from which a part is slow: equal parts of healthy hardware differ by less (two H200s' links
by 0.5 %, PCIe by 1.5 %: docs/benchmarks.md)."""
CHANCE = 0.001
"""The probability that chance alone makes any part of a healthy machine look slow. It is divided by
the number of parts (Bonferroni)."""
PEERS = 3
"""The fewest other parts of its kind with which a part is compared; fewer do not show what is
usual."""
_CELLS = 4
"""The fewest cells that must touch a part."""
_APART = 3.0
"""The least ratio of a part's loss to the usual differences between its peers."""


class Loss(NamedTuple):
    """The loss of the cells that touch a part. `lost` is a logarithm, and often too small, because
    another part may slow cells more. `errors` is the mean loss in standard errors, with `degrees`
    degrees of freedom. `cells` are the cells of the part."""

    part: Part
    lost: float
    errors: float
    degrees: float
    cells: tuple[RelativeRate, ...]

    @property
    def p(self) -> float:
        return two_sided(self.errors, self.degrees) / 2 if self.errors > 0 else 1.0


class _ClassSums(NamedTuple):
    """Sums over some of a class of equal cells. `cells` is their number. `sum` and `squares` are
    the sums of their logarithms and of the squares."""

    cells: int = 0
    sum: float = 0.0
    squares: float = 0.0

    @staticmethod
    def over(logs: Sequence[float]) -> _ClassSums:
        return _ClassSums(len(logs), sum(logs), sum(map(mul, logs, logs)))

    @property
    def rest(self) -> float:
        """Returns the sum of squared deviations from the mean."""
        return max(0.0, self.squares - self.sum**2 / self.cells)


def losses(rates: Sequence[RelativeRate], candidates: Iterable[Part]) -> Iterator[Loss]:
    """Yields the loss of each slow part, the surest first. All cells of a part together show that
    the part is slow. Cells that touch a slow part are not used as peers of other parts."""
    left, parts = list(rates), frozenset(candidates)
    found = list(_each(left, parts))
    while sure := [one for one in found if one.p < CHANCE / len(found)]:
        worst = max(sure, key=lambda one: one.errors)
        left = [each for each in left if worst.part not in each.case.touched]
        found = list(_each(left, parts))
        others = [abs(one.lost) for one in found if one.part.kind == worst.part.kind]
        usual = statistics.median(others) if others else 0.0
        if worst.lost > max(-math.log1p(-LEAST), _APART * usual, _unrest(worst, rates)):
            yield worst


def _unrest(loss: Loss, rates: Sequence[RelativeRate]) -> float:
    """Returns how much more the part's cells scatter than their peers. It is the root of the
    difference of variances. Such scatter alone lowers the total of several transfers."""
    classes = {each.case.peers for each in loss.cells}
    outside = [each for each in rates
               if each.case.peers in classes and loss.part not in each.case.touched]  # fmt: skip
    own, usual = (
        statistics.median(scatter_of(each.case) for each in side) for side in (loss.cells, outside)
    )
    return math.sqrt(max(0.0, own**2 - usual**2))


def _each(rates: Sequence[RelativeRate], parts: frozenset[Part]) -> Iterator[Loss]:
    logs: defaultdict[Hashable, list[float]] = defaultdict(list)
    of_part: defaultdict[Part, defaultdict[Hashable, list[float]]]
    of_part = defaultdict(lambda: defaultdict(list))
    beside: defaultdict[Hashable, set[Part]] = defaultdict(set)
    noise: dict[Hashable, frozenset[str]] = {}
    met_by = cache(parts.intersection)
    for each in rates:
        key, log = each.case.peers, math.log(each.case.figure)
        logs[key].append(log)
        if key not in noise:
            noise[key] = noise_of(each.case.touched)
        met = met_by(each.case.touched)
        beside[key] |= met
        for part in met:
            of_part[part][key].append(log)
    whole = {key: _ClassSums.over(of) for key, of in logs.items()}
    kinds_of = {key: Counter(part.kind for part in met) for key, met in beside.items()}
    groups = grouped((kinds, whole[key]) for key, kinds in noise.items())
    rests = {k: (sum(s.rest for s in of), sum(s.cells - 1 for s in of)) for k, of in groups.items()}
    for part, own in of_part.items():
        classes = {key: _ClassSums.over(of) for key, of in own.items()}
        gains = []
        for of, inside in classes.items():
            others = whole[of].cells - inside.cells
            peers = kinds_of[of][part.kind] - 1
            if others and peers >= PEERS:
                gain = (whole[of].sum - inside.sum) / others - inside.sum / inside.cells
                gains.append((noise[of], gain, inside.cells * others / whole[of].cells, of))
        told = {of for *_, of in gains}
        if sum(classes[of].cells for of in told) >= _CELLS and _is_alike(gains, classes):
            touching = (each for each in rates if part in each.case.touched)
            cells = tuple(each for each in touching if each.case.peers in told)
            yield from _loss(part, gains, rests, cells)


_Gain = tuple[frozenset[str], float, float, Hashable]
"""The gain of a class: its noise, how much more the cells without the part have, its weight, and
its key."""


def _is_alike(gains: Sequence[_Gain], classes: Mapping[Hashable, _ClassSums]) -> bool:
    """Whether the part's cells agree that the part is slow. Otherwise the loss may be chance."""
    sides = [(gain, classes[of]) for *_, gain, _, of in gains]
    count = sum(side.cells for _, side in sides)
    mean = sum(gain * side.cells for gain, side in sides) / count
    squares = sum(side.rest + side.cells * (gain - mean) ** 2 for gain, side in sides)
    error = math.sqrt(squares / (count - 1) / count + _QUIET**2 / count)
    return mean > 0 and two_sided(mean / error, count - 1) / 2 < CHANCE


def _loss(
    part: Part,
    gains: Sequence[_Gain],
    rests: dict[frozenset[str], tuple[float, int]],
    cells: tuple[RelativeRate, ...],
) -> Iterator[Loss]:
    """Yields the loss of a part, if it can be computed. `gains` has the differences between cells
    with and without the part, by class."""
    weights = lost = spread = 0.0
    known: list[tuple[float, float]] = []
    for kinds, of in grouped((kinds, (gain, weight)) for kinds, gain, weight, _ in gains).items():
        rest, degrees = rests[kinds]
        degrees -= len(of)
        if degrees < 1:
            continue
        variance = max(rest - sum(weight * gain**2 for gain, weight in of), 0.0) / degrees
        known += ((gain, weight / (variance + _QUIET**2)) for gain, weight in of)
        weight = sum(weight for _, weight in of) / (variance + _QUIET**2)
        weights += weight
        lost += sum(weight * gain for gain, weight in of) / (variance + _QUIET**2)
        spread += weight**2 / degrees
    if weights:
        mostly = weighted_median(known)
        yield Loss(part, mostly, lost / math.sqrt(weights), weights**2 / spread, cells)


_QUIET = 0.001
"""The relative standard deviation that any figure has."""

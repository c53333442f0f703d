"""Tests whether a part is less steady than its peers. Cells that touch the part are compared with
cells of the same class that do not.

Copies over PCIe on a host that others use are never as steady as copies inside a device, so a cell
is compared only with cells of its kind (`Case.kind`). A part without such cells is not tested. The
unit of the test is the cell, because consecutive samples share their disturbances."""

from __future__ import annotations

import math
import statistics
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import NamedTuple, TypeVar

from linkgauge.model.stats.student import two_sided

_T = TypeVar("_T")
_U = TypeVar("_U")
CHANCE = 0.01
"""The probability that chance alone makes any part of a healthy machine stand out. It is divided by
the number of parts (Bonferroni)."""
Classes = Sequence[tuple[Sequence[_T], Sequence[_T]]]
"""For each class of peers, the cells that touch a part, and the others; neither is empty."""


class Excess(NamedTuple):
    """How much a value of a part exceeds that of its peers. `ratio` is the part's value divided by
    its peers'. `p` is the probability that chance alone gives such a ratio or a larger one."""

    ratio: float
    p: float


def classes(
    inside: Iterable[tuple[Hashable, _T]], outside: Iterable[tuple[Hashable, _T]]
) -> Classes[_T]:
    """Groups values by the kind of their cells. `inside` are the values of cells that touch a part,
    and `outside` those of other cells. Kinds without values on both sides are left out."""
    found: defaultdict[Hashable, tuple[list[_T], list[_T]]] = defaultdict(lambda: ([], []))
    for place, members in enumerate((inside, outside)):
        for kind, each in members:
            found[kind][place].append(each)
    return [both for both in found.values() if all(both)]


def said_of(of: Classes[_T], said: Callable[[_T], _U]) -> Classes[_U]:
    """Returns the classes with the function `said` applied to each value."""
    return [([*map(said, one)], [*map(said, other)]) for one, other in of]


def more_scatter(of: Classes[float]) -> Excess | None:
    """Returns the ratio of the scatter of a part's cells to that of other cells, or None for too
    few cells. Scatter is the standard deviation of a cell's samples (geometric mean over cells).
    The probability is from Student's t on the logarithms, over all classes."""
    gained = weights = left = 0.0
    count = -1 - len(of)
    gains = []
    for touching, others in of:
        one, other = ([math.log(each) for each in side] for side in (touching, others))
        weight = len(one) * len(other) / (len(one) + len(other))
        gain = statistics.fmean(one) - statistics.fmean(other)
        gains.append((gain, weight))
        gained, weights = gained + weight * gain, weights + weight
        left += _squares(one) + _squares(other)
        count += len(one) + len(other)
    if count < 1:
        return None
    mean = gained / weights
    left += sum(weight * (gain - mean) ** 2 for gain, weight in gains)
    error = math.sqrt(left / count / weights)
    both = two_sided(mean / error, count) if error else 0.0
    return Excess(math.exp(mean), both / 2 if mean > 0 else 1 - both / 2)


def _squares(values: Sequence[float]) -> float:
    mean = statistics.fmean(values)
    return sum((value - mean) ** 2 for value in values)


def more_often(of: Classes[bool]) -> float:
    """Returns the probability that chance alone affects so many of a part's cells. Each value says
    whether a cell is affected. The test is Fisher's exact test, over all classes together."""
    chances = [1.0]
    shown = 0
    for touching, others in of:
        every, inside = len(touching) + len(others), len(touching)
        showing = sum(touching) + sum(others)
        shown += sum(touching)
        ways = [math.comb(showing, n) * math.comb(every - showing, inside - n)
                for n in range(inside + 1)]  # fmt: skip
        chances = _summed(chances, [way / math.comb(every, inside) for way in ways])
    return math.fsum(chances[shown:])


def more_events(of: Classes[tuple[int, int]]) -> float:
    """Returns the probability that chance alone gives a part's cells so many events. Each value is
    a pair: the events and the samples of a cell. Within a class, all samples are assumed to be
    equally likely to have an event. The result is an upper bound (Chernoff's). Events that come in
    bursts count less: their numbers are divided by their dispersion."""
    burst = _dispersion([side for both in of for side in both])
    sums = [
        (sum(n for n, _ in (*touching, *others)) / burst, _share(touching, others))
        for touching, others in of
    ]
    occurred = sum(n for touching, _ in of for n, _ in touching) / burst
    if occurred <= sum(number * share for number, share in sums):
        return 1.0
    low, high = 0.0, _STEEPEST
    for _ in range(_HALVINGS):
        tilt = (low + high) / 2
        tilted = sum(n * s / (s + (1 - s) * math.exp(-tilt)) for n, s in sums)
        low, high = (tilt, high) if tilted < occurred else (low, tilt)
    logs = (n * math.log1p(s * math.expm1(low)) for n, s in sums)
    return math.exp(min(0.0, math.fsum(logs) - low * occurred))


_STEEPEST = 50.0
_HALVINGS = 60
"""The number of times that the search interval for the bound's tilt is halved."""


def _share(touching: Sequence[tuple[int, int]], others: Sequence[tuple[int, int]]) -> float:
    return sum(n for _, n in touching) / sum(n for _, n in (*touching, *others))


def _dispersion(sides: Iterable[Sequence[tuple[int, int]]]) -> float:
    """Returns the variance of numbers of events divided by their mean, at least 1 (Pearson's X²
    over its degrees of freedom)."""
    squares, degrees = 0.0, 0
    for side in sides:
        rate = sum(n for n, _ in side) / sum(samples for _, samples in side)
        if rate:
            squares += sum((n - rate * samples) ** 2 / (rate * samples) for n, samples in side)
            degrees += len(side) - 1
    return max(1.0, squares / degrees) if degrees else 1.0


def _summed(one: Sequence[float], other: Sequence[float]) -> list[float]:
    """Returns the probabilities of the values 0, 1, 2 … for the sum of two independent counts."""
    found = [0.0] * (len(one) + len(other) - 1)
    for at, chance in enumerate(one):
        for beside, more in enumerate(other):
            found[at + beside] += chance * more
    return found

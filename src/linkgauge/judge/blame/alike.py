"""Is a part less steady than its peers? Cells that touch it beside cells of the same class that do
not.

Copies over PCIe on a host that others use are never as steady as copies inside a device, so a cell
is compared only with those of its kind (`Case.kind`), and a part without any with nothing. The unit
is the cell, because samples that follow each other share what disturbs them.
"""

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
"""How often chance alone may set any part of a healthy machine apart: with many parts, each of them
that many times less often (Bonferroni)."""
Classes = Sequence[tuple[Sequence[_T], Sequence[_T]]]
"""Of each class of peers, those that touch a part, and the others: neither is empty."""


class Excess(NamedTuple):
    """How much more a part has than its peers, and how likely chance alone does as much."""

    ratio: float
    p: float


def classes(
    inside: Iterable[tuple[Hashable, _T]], outside: Iterable[tuple[Hashable, _T]]
) -> Classes[_T]:
    """What is said of cells, each with the kind of the cell."""
    found: defaultdict[Hashable, tuple[list[_T], list[_T]]] = defaultdict(lambda: ([], []))
    for place, members in enumerate((inside, outside)):
        for kind, each in members:
            found[kind][place].append(each)
    return [both for both in found.values() if all(both)]


def said_of(of: Classes[_T], said: Callable[[_T], _U]) -> Classes[_U]:
    """The same with what is said of each."""
    return [([*map(said, one)], [*map(said, other)]) for one, other in of]


def more_scatter(of: Classes[float]) -> Excess | None:
    """Of standard deviations: by how much those of the part are larger, as a ratio of geometric
    means. Each class has a level of its own, and the part adds the same to the logarithms in each:
    Student's t of that sum, by least squares. None if too few cells say how they vary."""
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
    """Of what each cell shows or does not: how likely so many of the part's cells show it by
    chance alone, however many of a class do (Fisher's exact test over classes)."""
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
    """Of numbers of events, each with that of the samples in which they could occur: how likely the
    part has at least so many by chance alone, if each is as likely in any sample of its class. A
    bound of a sum of binomials (Chernoff's), exact where all events are the part's. Where events
    come in bursts, those of a burst count as one: numbers are divided by how many times as much as
    Poisson's they vary between cells that are alike."""
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
"""The tilt of the bound is looked for up to this, so often halved."""


def _share(touching: Sequence[tuple[int, int]], others: Sequence[tuple[int, int]]) -> float:
    return sum(n for _, n in touching) / sum(n for _, n in (*touching, *others))


def _dispersion(sides: Iterable[Sequence[tuple[int, int]]]) -> float:
    """Variance over mean of numbers of events, at least 1 (Pearson's X² over its degrees of
    freedom)."""
    squares, degrees = 0.0, 0
    for side in sides:
        rate = sum(n for n, _ in side) / sum(samples for _, samples in side)
        if rate:
            squares += sum((n - rate * samples) ** 2 / (rate * samples) for n, samples in side)
            degrees += len(side) - 1
    return max(1.0, squares / degrees) if degrees else 1.0


def _summed(one: Sequence[float], other: Sequence[float]) -> list[float]:
    """The chances of 0, 1, 2 … of two sums of numbers together."""
    found = [0.0] * (len(one) + len(other) - 1)
    for at, chance in enumerate(one):
        for beside, more in enumerate(other):
            found[at + beside] += chance * more
    return found

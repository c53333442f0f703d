"""Is a part less steady than its peers? Cells that touch it beside cells of the same class that do
not.

Copies over PCIe on a host that others use are never as steady as copies inside a device, so a cell
is compared with its peers alone (`Case.peers`), and a part without peers with nothing. The unit is
the cell, because samples that follow each other share what disturbs them.
"""

from __future__ import annotations

import math
import statistics
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import NamedTuple, TypeVar

from linkgauge.model.student import two_sided

_T = TypeVar("_T")
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
    inside: Iterable[tuple[tuple[str, ...] | None, _T]],
    outside: Iterable[tuple[tuple[str, ...] | None, _T]],
) -> Classes[_T]:
    """What is said of cells, each with the class of the cell's peers (None: it has none)."""
    found: defaultdict[tuple[str, ...], tuple[list[_T], list[_T]]]
    found = defaultdict(lambda: ([], []))
    for place, members in enumerate((inside, outside)):
        for peers, each in members:
            if peers is not None:
                found[peers][place].append(each)
    return [both for both in found.values() if all(both)]


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
    part has so many by chance alone, if each is as likely in any sample of its class."""
    chances = [1.0]
    occurred = 0
    for touching, others in of:
        share = sum(n for _, n in touching) / sum(n for _, n in (*touching, *others))
        occurred += sum(count for count, _ in touching)
        for _ in range(sum(count for count, _ in (*touching, *others))):
            chances = _summed(chances, [1 - share, share])
    return math.fsum(chances[occurred:])


def _summed(one: Sequence[float], other: Sequence[float]) -> list[float]:
    """The chances of 0, 1, 2 … of two sums of numbers together."""
    found = [0.0] * (len(one) + len(other) - 1)
    for at, chance in enumerate(one):
        for beside, more in enumerate(other):
            found[at + beside] += chance * more
    return found

"""Tests whether a part's cells differ from their peers (Student's t). Copies over PCIe vary more
than copies inside a device, so each difference is weighted by how little such cells vary."""

from __future__ import annotations

import itertools
import math
from bisect import bisect_left
from collections.abc import Hashable, Iterable, Sequence
from operator import itemgetter
from typing import NamedTuple

from linkgauge.model.grouped import grouped
from linkgauge.model.stats.moments import Moments
from linkgauge.model.stats.student import two_sided

from .limits import QUIET


def spread(some: Iterable[Moments], floor: float = QUIET) -> tuple[float, int]:
    """Returns the variance within groups plus `floor`², and its degrees of freedom."""
    rest, degrees = 0.0, 0
    for one in some:
        if one.n:
            rest, degrees = rest + one.rest, degrees + one.n - 1
    return rest / max(1, degrees) + floor**2, degrees


def chance(errors: float, degrees: float) -> float:
    """Returns the probability that chance puts a value this many standard `errors` above usual."""
    both = two_sided(errors, degrees)
    return both / 2 if errors > 0 else 1 - both / 2


class Side(NamedTuple):
    noise: Hashable
    inside: Moments
    outside: Moments


class Excess(NamedTuple):
    """How far a part's cells exceed their peers: `gain` is the weighted median over classes,
    `errors` the mean in standard errors, and `p` the probability that chance gives this mean."""

    gain: float
    errors: float
    p: float


def excess(sides: Iterable[Side], floor: float = QUIET) -> Excess | None:
    """Compares a part's cells with their peers. Returns None for too few cells."""
    both = [side for side in sides if side.inside.n and side.outside.n]
    within, degrees, shares = dict[Hashable, float](), 0, list[float]()
    for noise, some in grouped(zip(map(itemgetter(0), both), both, strict=True)).items():
        groups = itertools.chain.from_iterable(map(itemgetter(1, 2), some))
        within[noise], own = spread(groups, floor)
        degrees += own
        # What of a variance is known has no degrees of freedom to lose (F. Satterthwaite, 1946).
        shares += [floor**2 / within[noise]] if own else []
    count = degrees + len(both) - 1
    if not both or count < 1:
        return None
    gains = [(inside.mean - outside.mean, 1 / (1 / inside.n + 1 / outside.n) / within[noise])
             for noise, inside, outside in both]  # fmt: skip
    weights = sum(weight for _, weight in gains)
    mean = sum(gain * weight for gain, weight in gains) / weights
    # Classes that differ in what they gain are less sure than their cells are.
    left = sum(weight * (gain - mean) ** 2 for gain, weight in gains) + degrees
    errors = mean * math.sqrt(weights / max(1.0, left / count))
    unknown = max(1e-3, 1 - min(shares, default=0.0))
    return Excess(weighted_median(gains), errors, chance(errors, count / unknown**2))


def weighted_median(values: Sequence[tuple[float, float]]) -> float:
    ordered = sorted(values)
    passed = list(itertools.accumulate(map(itemgetter(1), ordered)))
    return ordered[bisect_left(passed, passed[-1] / 2 - 1e-12)][0]

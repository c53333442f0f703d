"""Tests whether a part's cells differ from their peers (Student's t). Copies over PCIe vary more
than copies inside a device, so each difference is weighted by how little such cells vary."""

from __future__ import annotations

import itertools
import math
from collections.abc import Hashable, Iterable, Sequence
from typing import NamedTuple

from linkgauge.model.grouped import grouped
from linkgauge.model.stats.moments import Moments
from linkgauge.model.stats.student import two_sided

from .limits import QUIET


def spread(some: Iterable[Moments], floor: float = QUIET) -> tuple[float, int]:
    """Returns the variance within groups plus `floor`², and its degrees of freedom."""
    groups = [one for one in some if one.n]
    degrees = sum(one.n - 1 for one in groups)
    return sum(one.rest for one in groups) / max(1, degrees) + floor**2, degrees


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
    within = grouped((side.noise, (side.inside, side.outside)) for side in both)
    known = {noise: spread(itertools.chain(*some), floor) for noise, some in within.items()}
    gains = [
        (one.inside.mean - one.outside.mean,
         1 / (1 / one.inside.n + 1 / one.outside.n) / known[one.noise][0])
        for one in both
    ]  # fmt: skip
    count = sum(degrees for _, degrees in known.values()) + len(gains) - 1
    if not gains or count < 1:
        return None
    weights = sum(weight for _, weight in gains)
    mean = sum(gain * weight for gain, weight in gains) / weights
    # Classes that differ in what they gain are less sure than their cells are.
    left = sum(weight * (gain - mean) ** 2 for gain, weight in gains)
    left += sum(degrees for _, degrees in known.values())
    errors = mean * math.sqrt(weights / max(1.0, left / count))
    # What of a variance is known has no degrees of freedom to lose (F. Satterthwaite, 1946).
    shares = [floor**2 / variance for variance, degrees in known.values() if degrees]
    unknown = max(1e-3, 1 - min(shares, default=0.0))
    return Excess(weighted_median(gains), errors, chance(errors, count / unknown**2))


def weighted_median(values: Sequence[tuple[float, float]]) -> float:
    ordered = sorted(values)
    half = sum(weight for _, weight in ordered) / 2
    passed = itertools.accumulate(weight for _, weight in ordered)
    at = next(place for place, weight in enumerate(passed) if weight >= half - 1e-12)
    return ordered[at][0]

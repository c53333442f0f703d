"""Finds the runs at which the level of a series changes. It assumes many changes, then moves or
removes them until all are significant by Student's t (bottom-up segmentation: E. Keogh et al., ICDM
2001). p is multiplied by the number of possible places (Bonferroni; K. Worsley, JASA 74, 1979)."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Sequence
from itertools import accumulate, pairwise
from operator import mul

import msgspec

from .student import two_sided
from .summary import robust_deviation

SIGNIFICANCE = 0.01
LEAST = 3
"""The fewest runs on each side of a change."""
_FAR = 4.0
_NEAR = 5
"""The number of runs on each side that show whether a run is an outlier."""
_LEAST_TO_TAME = 8
"""The fewest runs whose deviation is known well enough to tame outliers."""
_CLEAR = 4.0
"""The least distance between two levels, in deviations, at which values clearly belong to one of
the levels. A value must also be nearer to its level than `_NEAR_A_LEVEL` of the distance."""
_NEAR_A_LEVEL = 0.25
_MOST_TO_AND_FRO = 4
_LIKELY = 3.84
"""The 95 % quantile of chi-squared with one degree of freedom. A position is likely if twice its
log likelihood is at most this much below the best (D. Hinkley, Biometrika 57, 1970)."""


class ChangePoint(msgspec.Struct, frozen=True):
    """A change of level. `at` is the first run after the change; with 95 % confidence, it is one of
    `first` to `last`. `before` and `after` are medians. `p` is adjusted for all possible places."""

    at: int
    first: int
    last: int
    before: float
    after: float
    p: float

    @property
    def ratio(self) -> float:
        return self.after / self.before


def change_points(values: Sequence[float]) -> tuple[ChangePoint, ...]:
    """Returns the changes; none for under 2 × LEAST values, or if a value is not positive."""
    if len(values) < 2 * LEAST or min(values) <= 0:
        return ()
    logs = [math.log(value) for value in values]
    sums = _Sums(logs)
    ends = sums.standing()
    modes = _between_modes(logs, [at for at, _ in ends])
    ends = [end for end in ends if end[0] not in modes]
    bounds = [0, *(at for at, _ in ends), len(values)]
    return tuple(
        ChangePoint(
            at, *sums.likely(at, begin, end),
            statistics.median(values[begin:at]), statistics.median(values[at:end]), min(1.0, p),
        )
        for (at, p), begin, end in zip(ends, bounds, bounds[2:], strict=False)
    )  # fmt: skip


def holding(ps: Sequence[float], of: int) -> float:
    """Returns the largest significant p of `of` tests, or 0 (Benjamini and Hochberg, 1995)."""
    held = (
        p for rank, p in enumerate(sorted(ps), start=1) if p <= SIGNIFICANCE * min(1, rank / of)
    )
    return max(held, default=0.0)


def _tamed(logs: Sequence[float]) -> list[float]:
    steps = [abs(after - before) for before, after in pairwise(logs)]
    deviation = robust_deviation(steps) / math.sqrt(2)
    if not deviation or len(logs) < _LEAST_TO_TAME:
        return list(logs)
    tamed = []
    for at, value in enumerate(logs):
        near = logs[max(0, at - _NEAR) : at + _NEAR + 1]
        middle = sorted(near)[_NEAR] if len(near) > 2 * _NEAR else statistics.median(near)
        tamed.append(min(max(value, middle - _FAR * deviation), middle + _FAR * deviation))
    return tamed


def _between_modes(logs: Sequence[float], ats: Sequence[int]) -> set[int]:
    bounds = list(pairwise([0, *ats, len(logs)]))
    levels = [statistics.median(logs[begin:end]) for begin, end in bounds]
    noise = robust_deviation(
        abs(log - level)
        for (begin, end), level in zip(bounds, levels, strict=True)
        for log in logs[begin:end]
    )
    distance = 0.0
    for one, other in pairwise(levels):
        if abs(other - one) <= _CLEAR * noise:
            continue
        places = [(log - one) / (other - one) for log in logs]
        clear = [place > 0.5 for place in places if min(abs(place), abs(place - 1)) < _NEAR_A_LEVEL]
        if sum(before != after for before, after in pairwise(clear)) > _MOST_TO_AND_FRO:
            distance = max(distance, (1 + _NEAR_A_LEVEL) * abs(other - one))
    return {
        at
        for at, (one, other) in zip(ats, pairwise(levels), strict=True)
        if abs(other - one) <= distance
    }


class _Sums:
    def __init__(self, values: list[float]) -> None:
        self._values, values = values, _tamed(values)
        mean = statistics.fmean(values)
        self.length = len(values)
        self._sums = [0.0, *accumulate(value - mean for value in values)]
        self._squares = [0.0, *accumulate((value - mean) ** 2 for value in values)]
        # Equal values are, and differ by rounding.
        self._least = max(self._squares[-1] * 1e-12, len(values) * 1e-24)
        # Places of a change, times the neighbours that it may have. By simulation, at most 2 % of
        # series of 6 to 100 runs without a change have one, also with heavy or skewed tails.
        self._tries = (len(values) - 2 * LEAST + 1) * math.cbrt(len(values) / (2 * LEAST))

    def standing(self) -> list[tuple[int, float]]:
        places = range(LEAST, self.length - LEAST + 1, LEAST)
        found, wider = [(at, math.inf) for at in places], 1.0

        def anew(number: int) -> tuple[int, float]:
            ends = [0, *(at for at, _ in found), self.length]
            return self._clearest(ends[number], ends[number + 2], wider)

        while found:
            weakest = max(range(len(found)), key=lambda number: found[number][1])
            before = list(found)
            if found[weakest][1] < SIGNIFICANCE:
                wider = max(wider, self.wider([at for at, _ in found]))
                for number in range(len(found)):
                    found[number] = anew(number)
                if found == before:
                    break
            else:
                found[weakest] = anew(weakest)
                if found == before:
                    del found[weakest]
        return found

    def _clearest(self, begin: int, end: int, wider: float) -> tuple[int, float]:
        places = range(begin + LEAST, end - LEAST + 1)
        at = max(places, key=lambda at: self._explained(at, begin, end))
        explained, degrees = self._explained(at, begin, end), end - begin - 2
        within = max(self._total(begin, end) - explained, self._least)
        t = math.sqrt(explained * degrees / within) if explained > self._least else 0.0
        p = two_sided(t / wider, degrees) * self._tries
        return at, p if p >= SIGNIFICANCE or self._is_of_several(at, begin, end) else math.inf

    def _is_of_several(self, at: int, begin: int, end: int) -> bool:
        sides = self._values[begin:at], self._values[at:end]
        levels = [statistics.median(side) for side in sides]
        return all(
            sum(abs(value - own) < abs(value - other) for value in side) >= LEAST
            for side, own, other in zip(sides, levels, levels[::-1], strict=True)
        )

    def wider(self, ats: Iterable[int]) -> float:
        rest = list[float]()
        for begin, end in pairwise([0, *sorted(ats), self.length]):
            mean = (self._sums[end] - self._sums[begin]) / (end - begin)
            rest += [self._sums[at + 1] - self._sums[at] - mean for at in range(begin, end)]
        correlation = sum(map(mul, rest, rest[1:])) / max(
            sum(one * one for one in rest), self._least
        )
        correlation = min(max(correlation - 1 / math.sqrt(self.length), 0.0), 0.9)
        return math.sqrt((1 + correlation) / (1 - correlation))

    def likely(self, at: int, begin: int, end: int) -> tuple[int, int]:
        total = self._total(begin, end)
        best = max(total - self._explained(at, begin, end), self._least)
        limit = best * math.exp(_LIKELY / (end - begin))
        as_likely = [
            place
            for place in range(begin + 1, end)
            if max(total - self._explained(place, begin, end), self._least) <= limit
        ]
        return min(as_likely, default=at), max(as_likely, default=at)

    def _total(self, begin: int, end: int) -> float:
        total = self._sums[end] - self._sums[begin]
        return self._squares[end] - self._squares[begin] - total * total / (end - begin)

    def _explained(self, at: int, begin: int, end: int) -> float:
        size, k = end - begin, at - begin
        mean = (self._sums[end] - self._sums[begin]) / size
        return (self._sums[at] - self._sums[begin] - k * mean) ** 2 * size / (k * (size - k))

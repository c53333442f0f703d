"""Where a series of runs changes its level for good.

Each value is the median of one run. The series is searched over seeded intervals (S. Kovács, P.
Bühlmann, H. Li, A. Munk, Biometrika 110, 2023): of lengths that halve and overlap by half, so that
some interval holds each change alone, also a drop that was fixed later. In an interval, the split
with the largest two-sample t is the candidate. Its p-value is that of Student's t times the number
of splits tried in all intervals (Bonferroni; K. Worsley, JASA 74, 1979, for one change). The most
significant candidate is taken, then the next that lies apart from it, and last each must stand
between its neighbours.

It is the run, not the sample, that counts: what a run's samples scatter by says nothing here. All
of it works on logarithms, so changes are relative. A single run far off its neighbours is brought
closer first (`_FAR` deviations): one slow run is no change, nor are two.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator, Sequence
from itertools import accumulate, pairwise

import msgspec

from .summary import robust_deviation

LEAST = 3
"""Runs on each side of a change."""
SIGNIFICANCE = 0.01
_DECAY = 2.0
"""√2, as in the paper, tries twice as many splits, of which each has to be more significant."""
_FAR = 4.0
_NEAR = 5
"""Runs on each side that show whether one is far off."""
_LEAST_TO_TAME = 8
"""Fewer show no deviation well enough."""
_LIKELY = 3.84
"""The 95 % quantile of chi-squared with one degree of freedom: by how much twice the log likelihood
of a position may be less (D. Hinkley, Biometrika 57, 1970)."""


class ChangePoint(msgspec.Struct, frozen=True):
    """The level changes with the value `at` (from 0); `first` to `last` are the positions that are
    as likely by 95 %. `before` and `after` are the medians of the values up to the neighbouring
    changes. `p` counts all splits that were tried."""

    at: int
    first: int
    last: int
    before: float
    after: float
    p: float

    @property
    def ratio(self) -> float:
        return self.after / self.before


class _Split(msgspec.Struct, frozen=True, order=True):
    """The split of values `begin` to `end` (exclusive) at `at`. Its `p` orders them, then its t,
    which is negative here."""

    p: float
    t: float
    at: int
    begin: int
    end: int


def change_points(
    values: Sequence[float], significance: float = SIGNIFICANCE
) -> tuple[ChangePoint, ...]:
    """The changes of a series of positive values, in its order; none of fewer than 2 × LEAST."""
    if len(values) < 2 * LEAST or min(values) <= 0:
        return ()
    logs = _tamed([math.log(value) for value in values])
    intervals = list(_seeded(len(logs)))
    tried = sum(end - begin - 2 * LEAST + 1 for begin, end in intervals)
    sums = _Sums(logs, significance / tried)
    found = (sums.best(begin, end) for begin, end in intervals)
    chosen = _standing(_apart(sorted(filter(None, found))), sums)
    bounds = [0, *(split.at for split in chosen), len(values)]
    return tuple(
        ChangePoint(
            split.at, *sums.likely(split),
            statistics.median(values[begin : split.at]), statistics.median(values[split.at : end]),
            min(1.0, split.p * tried),
        )
        for split, begin, end in zip(chosen, bounds, bounds[2:], strict=False)
    )  # fmt: skip


def holding(ps: Sequence[float], of: int, significance: float = SIGNIFICANCE) -> float:
    """The largest p-value that still counts, of these found in so many series (Y. Benjamini, Y.
    Hochberg, JRSS B 57, 1995): where no series changes, any is found with at most `significance`.
    0 if none counts."""
    held = (
        p for rank, p in enumerate(sorted(ps), start=1) if p <= significance * min(1, rank / of)
    )
    return max(held, default=0.0)


def _tamed(logs: Sequence[float]) -> list[float]:
    """No value further than `_FAR` deviations from the median of its neighbours."""
    steps = [abs(after - before) for before, after in pairwise(logs)]
    deviation = robust_deviation(steps) / math.sqrt(2)
    if not deviation or len(logs) < _LEAST_TO_TAME:
        return list(logs)
    tamed = []
    for at, value in enumerate(logs):
        middle = statistics.median(logs[max(0, at - _NEAR) : at + _NEAR + 1])
        tamed.append(min(max(value, middle - _FAR * deviation), middle + _FAR * deviation))
    return tamed


def _seeded(length: int) -> Iterator[tuple[int, int]]:
    """Intervals: the whole, then ever shorter ones that overlap by half."""
    size, seen = float(length), set[tuple[int, int]]()
    while size >= 2 * LEAST:
        count = 2 * math.ceil(length / size) - 1
        shift = (length - size) / (count - 1) if count > 1 else 0.0
        for number in range(count):
            begin = math.floor(number * shift)
            interval = begin, min(length, math.ceil(begin + size))
            if interval not in seen:
                seen.add(interval)
                yield interval
        size /= _DECAY


class _Sums:
    """Sums of the first values and of their squares, about their mean, which give the t of any
    split. One counts whose p-value is below `limit`."""

    def __init__(self, values: Sequence[float], limit: float) -> None:
        mean = statistics.fmean(values)
        self.length = len(values)
        self._limit = limit
        self._sums = [0.0, *accumulate(value - mean for value in values)]
        self._squares = [0.0, *accumulate((value - mean) ** 2 for value in values)]
        # Equal values are, and differ by rounding.
        self._least = max(self._squares[-1] * 1e-12, len(values) * 1e-24)
        self._too_small: dict[int, float] = {}  # the largest t of these degrees that did not count

    def best(self, begin: int, end: int) -> _Split | None:
        """The split of an interval with the largest t; None if that does not count."""
        base, size = self._sums[begin], end - begin
        mean = (self._sums[end] - base) / size
        scores = [
            (total - base - k * mean) ** 2 / (k * (size - k))
            for k, total in enumerate(self._sums[begin + LEAST : end - LEAST + 1], start=LEAST)
        ]
        most = max(scores)
        t, degrees = self._t(begin, end, most * size), size - 2
        if t <= self._too_small.get(degrees, 0.0):
            return None
        p = two_sided(t, degrees)
        if p >= self._limit:
            self._too_small[degrees] = t
            return None
        return _Split(p, -t, begin + LEAST + scores.index(most), begin, end)

    def at(self, at: int, begin: int, end: int) -> _Split:
        t = self._t(begin, end, self._between(at, begin, end))
        return _Split(two_sided(t, end - begin - 2), -t, at, begin, end)

    def counts(self, split: _Split) -> bool:
        return split.p < self._limit

    def likely(self, split: _Split) -> tuple[int, int]:
        """The first and the last position about the split that is as likely."""
        begin, end = split.begin, split.end
        total = self._total(begin, end)
        best = max(total - self._between(split.at, begin, end), self._least)
        limit = best * math.exp(_LIKELY / (end - begin))
        as_likely = [
            at
            for at in range(begin + 1, end)
            if max(total - self._between(at, begin, end), self._least) <= limit
        ]
        return min(as_likely, default=split.at), max(as_likely, default=split.at)

    def _total(self, begin: int, end: int) -> float:
        total = self._sums[end] - self._sums[begin]
        return self._squares[end] - self._squares[begin] - total * total / (end - begin)

    def _between(self, at: int, begin: int, end: int) -> float:
        """The sum of squares that the split explains."""
        size, k = end - begin, at - begin
        mean = (self._sums[end] - self._sums[begin]) / size
        return (self._sums[at] - self._sums[begin] - k * mean) ** 2 * size / (k * (size - k))

    def _t(self, begin: int, end: int, between: float) -> float:
        if between <= self._least:
            return 0.0
        within = max(self._total(begin, end) - between, self._least)
        return math.sqrt(between * (end - begin - 2) / within)


def _apart(candidates: Sequence[_Split]) -> list[_Split]:
    """The most significant first; no other that shares its interval with one taken before."""
    taken: list[_Split] = []
    for one in candidates:
        if all(not one.begin < other.at < one.end for other in taken):
            taken.append(one)
    return sorted(taken, key=lambda split: split.at)


def _standing(taken: Sequence[_Split], sums: _Sums) -> list[_Split]:
    """Each tried between its neighbours; the weakest leaves until all count."""
    ats = [split.at for split in taken]
    while True:
        bounds = [0, *ats, sums.length]
        splits = [
            sums.at(at, begin, end) for at, begin, end in zip(ats, bounds, bounds[2:], strict=False)
        ]
        weakest = max(splits, default=None)
        if weakest is None or sums.counts(weakest):
            return splits
        ats.remove(weakest.at)


def two_sided(t: float, degrees: int) -> float:
    """The probability that |Student's t| is at least this: the regularised incomplete beta function
    of degrees ÷ (degrees + t²) (Abramowitz and Stegun, 26.7.1), by its continued fraction."""
    x = degrees / (degrees + t * t)
    a, b = degrees / 2, 0.5
    if x >= 1:
        return 1.0
    if x <= 0:
        return 0.0
    log = math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b)
    front = math.exp(log + a * math.log(x) + b * math.log1p(-x))
    if x < (a + 1) / (a + b + 2):
        return front * _fraction(x, a, b) / a
    return max(0.0, 1 - front * _fraction(1 - x, b, a) / b)


def _fraction(x: float, a: float, b: float) -> float:
    """Lentz's evaluation of the continued fraction of the incomplete beta function (W. Press et
    al., Numerical Recipes, 6.4)."""
    tiny = 1e-300
    c, d = 1.0, 1 / _nonzero(1 - (a + b) * x / (a + 1), tiny)
    value = d
    for m in range(1, 300):
        for term in (
            m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)),
            -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1)),
        ):
            d = 1 / _nonzero(1 + term * d, tiny)
            c = _nonzero(1 + term / c, tiny)
            value *= c * d
        if abs(c * d - 1) < 1e-12:
            break
    return value


def _nonzero(value: float, tiny: float) -> float:
    return value if abs(value) > tiny else tiny

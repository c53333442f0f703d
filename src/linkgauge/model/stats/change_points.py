"""Finds the runs at which the level of a series changes, for good or for a few runs.

Each value is the median of one run. The series is searched over seeded intervals (S. Kovács, P.
Bühlmann, H. Li, A. Munk, Biometrika 110, 2023). Their lengths halve and they overlap by half, so
that some interval contains each change alone. The candidates of an interval are the stretches whose
level differs from the rest of the interval by the largest two-sample t. There are two kinds. A
change lasts to the end of the interval. A dip has few runs, and the level comes back after it; both
ends of a dip are tested as one (A. Olshen, E. Venkatraman, R. Lucito, M. Wigler, Biostatistics 5,
2004). A p-value is that of Student's t, times the number of stretches of the same kind tried in all
intervals (Bonferroni; K. Worsley, JASA 74, 1979, for one change). Most of the significance is for
changes that last. Candidates are taken in order of significance, unless a taken candidate ends
within their interval. Finally each candidate must remain significant when it is tested between its
neighbours.

The unit of evidence is the run, not the sample: the scatter of a run's samples is not used. All
computations use logarithms, so changes are relative. A single run far off its neighbours is first
moved to within `_FAR` deviations. One or two slow runs are no change."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import accumulate, pairwise
from operator import itemgetter, mul, sub

import msgspec

from .student import critical, two_sided
from .summary import robust_deviation

SIGNIFICANCE = 0.01
LEAST = 3
"""The fewest runs on each side of a change."""
_LONGEST = 12
"""The most runs of a stretch that is found as a whole, with both ends. The ends of longer stretches
are found separately."""
_OF_DIPS = 0.1
"""The part of the significance that is used for stretches after which the level comes back."""
_DECAY = 2.0
"""The factor by which intervals become shorter. √2, as in the paper, tries twice as many splits,
and each of them must then be more significant."""
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
    """A change of the level at value number `at` (from 0). With 95 % confidence, the change is
    between `first` and `last`. `before` and `after` are the medians of the values up to the
    neighbouring changes. `p` is adjusted for the number of stretches that were tried."""

    at: int
    first: int
    last: int
    before: float
    after: float
    p: float

    @property
    def ratio(self) -> float:
        return self.after / self.before


class _Stretch(msgspec.Struct, frozen=True, order=True):
    """The values from `first` to `last` (exclusive), tested against the other values from `begin`
    to `end` (exclusive). `p` is adjusted for the number of stretches that were tried. `t` is stored
    as a negative number, so that sorting puts the clearest stretch first."""

    p: float
    t: float
    first: int
    last: int
    begin: int
    end: int

    @property
    def ats(self) -> tuple[int, ...]:
        """The positions at which the level changes: one, or two for a dip."""
        return (self.first,) if self.last == self.end else (self.first, self.last)


def change_points(
    values: Sequence[float], significance: float = SIGNIFICANCE
) -> tuple[ChangePoint, ...]:
    """Returns the changes of a series of positive values, in order. The result is empty for fewer
    than 2 × LEAST values."""
    if len(values) < 2 * LEAST or min(values) <= 0:
        return ()
    logs = [math.log(value) for value in values]
    sums = _Sums(logs, significance)
    found = sorted(one for of in _seeded(len(logs)) for one in sums.candidates(*of))
    chosen = _standing(_apart(found), sums)
    ends = sorted((at, stretch.p) for stretch in chosen for at in stretch.ats)
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


def holding(ps: Sequence[float], of: int, significance: float = SIGNIFICANCE) -> float:
    """Returns the largest p-value that still counts as significant among `of` series, or 0 if none
    does (Y. Benjamini, Y. Hochberg, JRSS B 57, 1995). If no series changes, the probability of
    finding any change is at most `significance`."""
    held = (
        p for rank, p in enumerate(sorted(ps), start=1) if p <= significance * min(1, rank / of)
    )
    return max(held, default=0.0)


def _tamed(logs: Sequence[float]) -> list[float]:
    """Returns the values with outliers moved to at most `_FAR` deviations from the median of their
    neighbours."""
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
    """Returns the changes that only move between two levels that the runs alternate between. A
    series that alternates may stay at one level for a while."""
    bounds = list(pairwise([0, *ats, len(logs)]))
    levels = [statistics.median(logs[begin:end]) for begin, end in bounds]
    noise = robust_deviation(
        abs(log - level)
        for (begin, end), level in zip(bounds, levels, strict=True)
        for log in logs[begin:end]
    )
    apart = 0.0
    for one, other in pairwise(levels):
        if abs(other - one) <= _CLEAR * noise:
            continue
        places = [(log - one) / (other - one) for log in logs]
        clear = [place > 0.5 for place in places if min(abs(place), abs(place - 1)) < _NEAR_A_LEVEL]
        if sum(before != after for before, after in pairwise(clear)) > _MOST_TO_AND_FRO:
            apart = max(apart, (1 + _NEAR_A_LEVEL) * abs(other - one))
    return {
        at
        for at, (one, other) in zip(ats, pairwise(levels), strict=True)
        if abs(other - one) <= apart
    }


def _seeded(length: int) -> Iterator[tuple[int, int]]:
    """Yields the intervals to search: the whole series, then ever shorter intervals that overlap by
    half."""
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


def _dips(begin: int, end: int) -> Iterator[tuple[int, range]]:
    """Yields the lengths of stretches within an interval after which the level may come back, each
    with the positions at which such a stretch may begin."""
    for length in range(LEAST, _LONGEST + 1):
        if firsts := range(begin + LEAST, end - LEAST - length + 1):
            yield length, firsts


@lru_cache
def _tries(length: int) -> tuple[float, float]:
    """Returns the factors by which the p-values of changes and of dips are multiplied in a series
    of this length."""
    splits = sum(end - begin - 2 * LEAST + 1 for begin, end in _seeded(length))
    back = sum(len(firsts) for of in _seeded(length) for _, firsts in _dips(*of))
    return splits / (1 - _OF_DIPS), back / _OF_DIPS


class _Sums:
    """Computes the t of any stretch quickly, from running sums. Outliers are moved closer first. A
    stretch counts if its p-value, multiplied by the number of stretches of the same kind, is below
    the significance."""

    def __init__(self, values: list[float], significance: float) -> None:
        self._values, values = values, _tamed(values)
        mean = statistics.fmean(values)
        self.length = len(values)
        self._sums = [0.0, *accumulate(value - mean for value in values)]
        self._of_length = {
            k: list(map(sub, self._sums[k:], self._sums)) for k in range(LEAST, _LONGEST + 1)
        }
        self._squares = [0.0, *accumulate((value - mean) ** 2 for value in values)]
        # Equal values are, and differ by rounding.
        self._least = max(self._squares[-1] * 1e-12, len(values) * 1e-24)
        self.significance = significance
        self._tries = _tries(len(values))

    def candidates(self, begin: int, end: int) -> Iterator[_Stretch]:
        """Yields the change and the dip of an interval that have the largest t, if they count."""
        size, sums = end - begin, self._sums
        mean = (sums[end] - sums[begin]) / size
        splits = (
            ((sums[end] - sums[at] - (end - at) * mean) ** 2 / ((end - at) * (at - begin)), at, end)
            for at in range(begin + LEAST, end - LEAST + 1)
        )
        for most, first, last in (max(splits, key=itemgetter(0)), *self._dip(begin, end, mean)):
            t = self._t(begin, end, most * size)
            tries = self._tries[last < end]
            if t > critical(min(0.5, self.significance / tries), size - 2):
                found = _Stretch(two_sided(t, size - 2) * tries, -t, first, last, begin, end)
                if self._is_of_several(found):
                    yield found

    def _dip(self, begin: int, end: int, mean: float) -> list[tuple[float, int, int]]:
        """Returns the dip of an interval that explains the most for each value; none if the
        interval is too short for dips."""
        tried = []
        for k, firsts in _dips(begin, end):
            sums = self._of_length[k][firsts.start : firsts.stop]
            farthest = max(max(sums), min(sums), key=lambda one: abs(one - k * mean))
            score = (farthest - k * mean) ** 2 / (k * (end - begin - k))
            first = firsts[sums.index(farthest)]
            tried.append((score, first, first + k))
        return [max(tried, key=itemgetter(0))] if tried else []

    def _is_of_several(self, one: _Stretch) -> bool:
        """Whether the stretch rests on more than a few values. At least LEAST values inside must be
        nearer to the stretch's level than to the other level, and at least LEAST values outside
        nearer to the other level."""
        inside = self._values[one.first : one.last]
        outside = self._values[one.begin : one.first] + self._values[one.last : one.end]
        level, other = statistics.median(inside), statistics.median(outside)
        own = sum(abs(value - level) < abs(value - other) for value in inside)
        others = sum(abs(value - other) < abs(value - level) for value in outside)
        return min(own, others) >= LEAST

    def between(self, stretch: _Stretch, begin: int, end: int, wider: float) -> _Stretch:
        """Returns the same change or dip, tested between `begin` and `end`. Errors are multiplied
        by `wider`."""
        last = end if stretch.last == stretch.end else stretch.last
        t = self._t(begin, end, self._explained(stretch.first, last, begin, end)) / wider
        p = two_sided(t, end - begin - 2) * self._tries[last < end]
        return _Stretch(p, -t, stretch.first, last, begin, end)

    def wider(self, ats: Iterable[int]) -> float:
        """Returns the factor by which the error of a mean exceeds that of independent values. `ats`
        are the positions at which the level changes. Neighbouring values may be correlated, as in
        runs that stay in one of two modes for a while. Such values say as little as fewer
        independent values (G. Box, G. Jenkins, Time Series Analysis, 1970: the variance of an
        autoregressive mean). A correlation of up to one standard error counts as chance."""
        rest = list[float]()
        for begin, end in pairwise([0, *sorted(ats), self.length]):
            mean = (self._sums[end] - self._sums[begin]) / (end - begin)
            rest += [self._sums[at + 1] - self._sums[at] - mean for at in range(begin, end)]
        alike = sum(map(mul, rest, rest[1:])) / max(sum(one * one for one in rest), self._least)
        alike = min(max(alike - 1 / math.sqrt(self.length), 0.0), 0.9)
        return math.sqrt((1 + alike) / (1 - alike))

    def likely(self, at: int, begin: int, end: int) -> tuple[int, int]:
        """Returns the first and the last likely position of the change at `at`. `begin` and `end`
        are the neighbouring changes."""
        total = self._total(begin, end)
        best = max(total - self._explained(at, end, begin, end), self._least)
        limit = best * math.exp(_LIKELY / (end - begin))
        as_likely = [
            place
            for place in range(begin + 1, end)
            if max(total - self._explained(place, end, begin, end), self._least) <= limit
        ]
        return min(as_likely, default=at), max(as_likely, default=at)

    def _total(self, begin: int, end: int) -> float:
        total = self._sums[end] - self._sums[begin]
        return self._squares[end] - self._squares[begin] - total * total / (end - begin)

    def _explained(self, first: int, last: int, begin: int, end: int) -> float:
        """Returns the sum of squares that a separate level for a stretch explains."""
        size, k = end - begin, last - first
        mean = (self._sums[end] - self._sums[begin]) / size
        return (self._sums[last] - self._sums[first] - k * mean) ** 2 * size / (k * (size - k))

    def _t(self, begin: int, end: int, explained: float) -> float:
        if explained <= self._least:
            return 0.0
        within = max(self._total(begin, end) - explained, self._least)
        return math.sqrt(explained * (end - begin - 2) / within)


def _apart(candidates: Sequence[_Stretch]) -> list[_Stretch]:
    """Returns the most significant stretches. A stretch is left out if a more significant one has
    an end within its interval."""
    taken: list[_Stretch] = []
    for one in candidates:
        if not any(one.begin < at < one.end for other in taken for at in other.ats):
            taken.append(one)
    return taken


def _standing(taken: Sequence[_Stretch], sums: _Sums) -> list[_Stretch]:
    """Returns the stretches that remain significant when each is tested between its neighbours. The
    weakest stretch is removed until all are significant."""
    left = list(taken)
    while left:
        wider = sums.wider([at for one in left for at in one.ats])
        tried = []
        for one in left:
            others = [at for other in left if other is not one for at in other.ats]
            begin = max((at for at in others if at < one.first), default=0)
            end = min((at for at in others if at > one.ats[-1]), default=sums.length)
            tried.append(sums.between(one, begin, end, wider))
        weakest = max(range(len(tried)), key=tried.__getitem__)
        if tried[weakest].p < sums.significance:
            return tried
        del left[weakest]
    return []

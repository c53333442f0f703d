"""Computes intervals into which the median of another run falls.

A cell is measured in visits. Each visit (round of samples) has its own buffers, start signals and
moment, like another run, and figures vary with all of these. Intervals are therefore computed from
visits, not samples. Samples taken back to back share buffers and moment: intervals from their
scatter alone covered only 79 % of what they should.

An interval has two parts. Variation between visits is assumed to be normal. Its variance is the
variance of the visits' means, less the part due to the scatter of samples. This variance is pooled
over similar cells, because a cell has few visits, and Student's t is narrow only if many visits
determine the variance (G. Snedecor, W. Cochran, Statistical Methods, 8th ed., 6.9, 12.3 and 13).
Variation between samples is seldom normal: copies take one of two or three durations, or stall now
and then. That part is therefore computed from the order of the samples alone (T. Hettmansperger, S.
Sheather, Statistics & Probability Letters 4, 1986). Each part has separate halves below and above
the median. The halves of both parts are combined by root sum of squares (G. Zou, A. Donner,
Statistics in Medicine 27, 2008).

All computations use logarithms, so intervals are relative."""

from __future__ import annotations

import math
import statistics
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from functools import cache
from itertools import accumulate, chain

import msgspec

from .student import critical, exceeds, ratio_exceeded
from .summary import deviation

VisitSamples = Sequence[Sequence[float]]
"""The samples of a cell, visit by visit. No visit is empty."""
COVERAGE = 0.95
_F = (math.inf, 99.0, 9.28, 6.39, 5.05, 4.28, 3.79, 3.44, 3.18, 2.98)
"""Quantiles of F with 1, 2 … degrees of freedom each: the 95 % quantile from 3 on, and the 99 %
quantile for 2. There is none for 1, because the variance can then take any value by chance."""
_F_STRICT = (math.inf, 999.0, 141.1, 53.4, 29.8, 20.0, 15.0, 12.0, 10.1, 8.75)
"""The 99.9 % quantiles of F. A noisy cell whose few visits agree by chance must not count as
quiet."""
_SAME = 1 + 1e-9
"""Tolerance, so that rounding does not exclude a cell from its own pool."""
_CERTAIN = 0.01
"""If noise as large as a cell's has a lower probability, given the variance of the other cells, the
cell is not like the others."""
_NEAR = 1e-5
"""A ratio so near to a limit is looked at more closely, because limits are rounded."""
_MEDIAN = math.pi / 2
"""The variance of a normal sample's median for many samples, as a multiple of the variance of its
mean."""
_CHANCE = 4
"""By chance, the variance of visits may be this multiple of the part that the scatter of samples
causes: F's 95 % quantile for about 6 degrees of freedom and those of the samples."""
_BIAS = 1.25
"""A correction factor. The difference of two variances, clipped at zero, is too large on average.
With six degrees of freedom and a true difference of zero, it is too large by 0.22 of the samples'
part."""
_LEAST_TO_TAME = 8
_FAR = 3
_GAP = 2
"""A bound is interpolated between two samples only if their distance is at most this multiple of
the distance from the median to the inner one. A bound would otherwise lie between two modes, where
no sample lies."""


class Estimate(msgspec.Struct, frozen=True):
    """A cell's headline figure, with its interval from `low` to `high` as logarithms. The variation
    between visits has `degrees` degrees of freedom and comes from `alike` cells."""

    figure: float
    low: float
    high: float
    degrees: int
    alike: int

    @property
    def log(self) -> float:
        return math.log(self.figure)

    def interval(self) -> tuple[float, float]:
        """Returns the interval into which another run's median falls with the probability
        `COVERAGE`. The interval is in the samples' unit and always contains the figure."""
        return min(math.exp(self.low), self.figure), max(math.exp(self.high), self.figure)


class _Spread(msgspec.Struct, frozen=True):
    """The variation of a cell's figures. `between` is the variance between the means of visits
    (rounds of samples); None for one visit. `degrees` is its degrees of freedom. `scatter` is the
    variance of a single sample within a visit; None if no visit has two samples. `share` is the
    fraction of `scatter` that remains in a visit's mean."""

    between: float | None
    degrees: int
    scatter: float | None
    share: float

    @property
    def error(self) -> float:
        """The square of the figure's standard error. It comes from the cell's visits or, for one
        visit, from the samples."""
        if self.between is not None:
            return self.between * _median_factor(self.degrees + 1)
        return (self.scatter or 0.0) * self.share


class _Pooled(msgspec.Struct, frozen=True):
    """The variation of several similar cells together. `between` is the variance between the means
    of visits, with `degrees` degrees of freedom. `within` is the part of `between` that comes from
    samples within visits. `scatter` is the variance of a single sample; None if no visit has two
    samples. `alike` is the number of cells."""

    between: float
    within: float
    scatter: float | None
    degrees: int
    alike: int


def estimates(cells: Sequence[VisitSamples]) -> list[Estimate | None]:
    """Returns the estimate for each of several similar cells. An estimate is None if a figure of
    the cell is not positive. All estimates are None if no cell has two visits."""
    # Equal cells of a simulated machine have the same samples, which are worked out once.
    unlike: dict[tuple[tuple[float, ...], ...], int] = {}
    numbers = [unlike.setdefault(tuple(map(tuple, cell)), len(unlike)) for cell in cells]
    known = [(cell, logs, _spread(logs)) if (logs := _logs(cell)) else None for cell in unlike]
    pools = _Pools([of[-1] for number in numbers if (of := known[number]) is not None])
    found = [None if of is None else _estimate(*of, pools.of(of[-1])) for of in known]
    return [found[number] for number in numbers]


def _estimate(
    cell: VisitSamples, visits: VisitSamples, own: _Spread, pooled: _Pooled | None
) -> Estimate | None:
    """Returns the estimate for a cell. `visits` has the logarithms of its samples."""
    if pooled is None:
        return None
    figure = statistics.median([sample for visit in cell for sample in visit])
    middle = math.log(figure)
    excess = max(0.0, pooled.between - _BIAS * pooled.within)
    t = critical(1 - COVERAGE, pooled.degrees)
    between = t * math.sqrt(_median_factor(len(visits)) * excess)
    # Samples are compared with the differences between visits removed, except the part of them that
    # the scatter of samples alone may cause.
    apart = max(0.0, 1 - _CHANCE * pooled.within / pooled.between) if pooled.between else 0.0
    # Where no visit has two samples, the variance between visits includes that of samples.
    single = own.scatter if pooled.scatter is None else pooled.scatter
    scatter = t * math.sqrt((single or 0.0) * _median_factor(sum(map(len, visits))))
    ordered = _of_samples(chain.from_iterable(visits))
    nearer = _of_samples(_nearer(visits, middle, apart)) if apart else ordered
    below, above = nearer or (scatter, scatter)
    # Visits that fall into two groups are not normal: the order of all samples sets a lower bound;
    # of too few for that, their standard error, however quiet the alike cells are.
    least = ordered or (math.sqrt(own.error),) * 2
    low, high = max(math.hypot(below, between), least[0]), max(math.hypot(above, between), least[1])
    return Estimate(figure, middle - low, middle + high, pooled.degrees, pooled.alike)


class _Pools:
    """The variations of cells, sorted by variance so that similar cells can be pooled. A cell with
    one visit says nothing about the variance between visits. A cell with one sample per visit says
    nothing about the variance within visits."""

    def __init__(self, spread: Sequence[_Spread]) -> None:
        known = [(each.between, each) for each in spread if each.between is not None]
        known.sort(key=lambda one: one[0])
        self._variances = [between for between, _ in known]
        self._between = _sums(between * each.degrees for between, each in known)
        self._shares = _sums(each.share * each.degrees for _, each in known)
        self._degrees = _sums(each.degrees for _, each in known)
        scatters = [(each.scatter, each.degrees) for _, each in known]
        self._scatter = _sums((scatter or 0.0) * degrees for scatter, degrees in scatters)
        self._sampled = _sums(0 if scatter is None else degrees for scatter, degrees in scatters)

    def of(self, own: _Spread) -> _Pooled | None:
        """Returns the pooled variation of the cells that vary like this cell. If this cell has no
        variance, all cells are pooled. Returns None if no variance is known."""
        low, high = 0, len(self._variances)
        if own.between is not None:
            at = min(own.degrees, len(_F)) - 1
            if _F[at] < math.inf:
                low = bisect_left(self._variances, own.between / (_F[at] * _SAME))
                high = bisect_right(self._variances, own.between * _F_STRICT[at] * _SAME)
            low = self._without_quieter(own.between, own.degrees, low, high)
        degrees = self._degrees[high] - self._degrees[low]
        if not degrees:
            return None
        between, shares, scatter, sampled = (
            max(0.0, sums[high] - sums[low])
            for sums in (self._between, self._shares, self._scatter, self._sampled)
        )
        single = scatter / sampled if sampled else None
        within = (single or 0.0) * shares / degrees
        return _Pooled(between / degrees, within, single, int(degrees), high - low)

    def _without_quieter(self, own: float, degrees: int, low: int, high: int) -> int:
        """Returns the index of the first cell to pool. Quieter cells before this index are left
        out, so that the pooled cells are as noisy as this cell."""

        def is_like(first: int) -> bool:
            rest = self._degrees[high] - self._degrees[first] - degrees
            between = self._between[high] - self._between[first] - own * degrees
            if rest <= 0 or own * rest <= between:
                return True
            ratio = own * rest / between if between > 0 else math.inf
            return _is_chance(ratio, degrees, int(rest))

        return bisect_left(range(high), True, low, bisect_left(self._variances, own), key=is_like)


def _is_chance(ratio: float, degrees: int, others: int) -> bool:
    """Whether two estimates of the same variance may have this ratio by chance. Most ratios are
    outside of the limits of the next powers of 2, which are known."""
    fewer = 1 << others.bit_length() - 1
    least, most = (ratio_exceeded(_CERTAIN, degrees, n) for n in (2 * fewer, fewer))
    if not least * (1 - _NEAR) < ratio < most * (1 + _NEAR):
        return ratio < most
    return exceeds(ratio, degrees, others) >= _CERTAIN


def _sums(values: Iterable[float]) -> list[float]:
    """Returns the sums of the first 0, 1, 2 … values."""
    return [0.0, *accumulate(values)]


def _logs(samples: VisitSamples) -> VisitSamples | None:
    if not samples or min(map(min, samples)) <= 0:
        return None
    return [list(map(math.log, visit)) for visit in samples]


def _spread(visits: VisitSamples) -> _Spread:
    tamed = _tamed(visits)
    means = [statistics.fmean(visit) for visit in tamed]
    between = deviation(means) ** 2 if len(means) > 1 else None
    several = [visit for visit in tamed if len(visit) > 1]
    degrees = sum(len(visit) - 1 for visit in several)
    squares = sum(deviation(visit) ** 2 * (len(visit) - 1) for visit in several)
    share = statistics.fmean(1 / len(visit) for visit in tamed)
    return _Spread(between, len(means) - 1, squares / degrees if degrees else None, share)


def _tamed(visits: VisitSamples) -> VisitSamples:
    """Returns the samples with stalls clipped. Samples outside three times the interquartile range
    (J. Tukey, Exploratory Data Analysis, 1977) become equal to the farthest sample inside."""
    ordered = sorted(chain.from_iterable(visits))
    if len(ordered) < _LEAST_TO_TAME:
        return visits
    lower, _, upper = statistics.quantiles(ordered)
    reach = _FAR * (upper - lower)
    if lower - reach <= ordered[0] and ordered[-1] <= upper + reach:
        return visits
    kept = [sample for sample in ordered if lower - reach <= sample <= upper + reach]
    return [[min(max(sample, kept[0]), kept[-1]) for sample in visit] for visit in visits]


def _nearer(visits: VisitSamples, middle: float, apart: float) -> list[float]:
    """Returns the samples without the fraction `apart` of the differences between visits."""
    offsets = [apart * (statistics.median(visit) - middle) for visit in visits]
    return [one - offset for visit, offset in zip(visits, offsets, strict=True) for one in visit]


def _of_samples(samples: Iterable[float]) -> tuple[float, float] | None:
    """Returns how far the median's interval reaches below and above the median of the samples.
    Returns None for too few samples."""
    ordered = sorted(samples)
    place = _place(len(ordered))
    if place is None:
        return None
    rank, share = place
    centre = statistics.median(ordered)
    return (
        centre - _bound(ordered[rank - 1], ordered[rank], share, centre),
        _bound(ordered[-rank], ordered[-rank - 1], share, centre) - centre,
    )


def _bound(outer: float, inner: float, share: float, centre: float) -> float:
    if abs(outer - inner) > _GAP * abs(inner - centre):
        return outer
    return outer + share * (inner - outer)


@cache
def _place(count: int) -> tuple[int, float] | None:
    """Returns the sample at which an interval of the median with `COVERAGE` begins. The first
    number is the sample's rank from either end. The second is the fraction of the distance to the
    next sample. Returns None for too few samples."""
    ranks = range(1, count // 2 + 1)
    covered = list(accumulate((math.comb(count, k - 1) for k in ranks), initial=0))
    shares = [1 - 2 * below / 2**count for below in covered]
    reached = [rank for rank in ranks if rank < count / 2 and shares[rank] >= COVERAGE]
    if not reached:
        return None
    rank = reached[-1]
    part = (shares[rank] - COVERAGE) / (shares[rank] - shares[rank + 1])
    return rank, (count - rank) * part / (rank + (count - 2 * rank) * part)


def _median_factor(count: int) -> float:
    """Returns the variance of the median of `count` normal values of variance 1, within 1 % of the
    exact value. For an even count the median is the mean of the middle two values."""
    if count <= 2:
        return 1 / count
    return _MEDIAN / (count + (_MEDIAN - 1 if count % 2 else 1.25))

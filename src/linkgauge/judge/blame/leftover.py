"""Finds what is left once slow cells are explained: parts whose cells differ from their peers by so
little that only all of them together show it.

Cells that use a part are compared with cells of the same class that do not. Copies over PCIe on a
host that others use are never as steady as copies inside a device, so the differences are weighted
by how little such cells vary. Student's t tests them."""

from __future__ import annotations

import math
import statistics
from collections import Counter
from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from linkgauge.model.grouped import grouped
from linkgauge.model.hardware.part import Kind, Part
from linkgauge.model.stats.moments import Moments, moments
from linkgauge.model.stats.student import two_sided

from .explain import weighted_median
from .limits import CHANCE, ENOUGH_PEERS, LEAST_LOSS, QUIET, SMALL_LOSS
from .table import Row, kinds_of, scatter_of

Sides = Mapping[Hashable, Moments]
"""Values of cells, by a key that is equal for the cells of a class."""


class Excess(NamedTuple):
    """By how much the values of a part's cells exceed those of their peers: the weighted median
    over classes. `errors` is the mean excess in standard errors, with `degrees` of freedom.
    `classes` are the classes with cells on both sides."""

    gain: float
    errors: float
    degrees: float
    classes: frozenset[Hashable]

    @property
    def p(self) -> float:
        """Returns the probability that chance alone gives such an excess or a larger one."""
        both = two_sided(self.errors, self.degrees)
        return both / 2 if self.errors > 0 else 1 - both / 2


def excess(
    inside: Sides, outside: Sides, noise: Mapping[Hashable, Hashable] | None = None
) -> Excess | None:
    """Compares the values of cells that use a part, `inside`, with those of their peers. Classes
    with the same `noise` vary alike. Returns None for too few cells."""
    both = [(of, inside[of], outside[of]) for of in inside if of in outside]
    kinds = {of: noise[of] if noise else None for of, *_ in both}
    rests = grouped((kinds[of], one.rest + other.rest) for of, one, other in both)
    degrees = grouped((kinds[of], one.n + other.n - 2) for of, one, other in both)
    variance = {kind: sum(rests[kind]) / sum(of) + QUIET**2 if noise else 1.0
                for kind, of in degrees.items() if sum(of) or not noise}  # fmt: skip
    gains = [
        (one.mean - other.mean, one.n * other.n / (one.n + other.n) / variance[kinds[of]])
        for of, one, other in both if kinds[of] in variance
    ]  # fmt: skip
    known = frozenset(of for of in kinds if kinds[of] in variance)
    if not gains:
        return None
    weights = sum(weight for _, weight in gains)
    mean = sum(gain * weight for gain, weight in gains) / weights
    # Classes that differ in what they gain are less sure than their cells are.
    left = sum(weight * (gain - mean) ** 2 for gain, weight in gains)
    left += sum(sum(rests[kind]) / each for kind, each in variance.items())
    count = sum(map(sum, (degrees[kind] for kind in variance))) + len(gains) - 1
    if count < 1:
        return None
    errors = mean * math.sqrt(weights * count / left) if left else math.copysign(math.inf, mean)
    return Excess(weighted_median(gains), errors, count, known)


class SmallLoss(NamedTuple):
    """A part whose cells together show that it is slow, with the share of its rate that is lost,
    as a logarithm."""

    part: Part
    lost: float
    rows: tuple[Row, ...]


def small_losses(rows: Sequence[Row], parts: Collection[Part]) -> Iterator[SmallLoss]:
    """Yields the parts that all their cells together show to be slow, the surest first. Cells that
    use such a part are no peers of other parts."""
    left = list(rows)
    noise: dict[Hashable, Hashable] = {row.peers: kinds_of(row.parts) for row in rows}
    while True:
        found = dict(_compared(left, frozenset(parts), noise))
        sure = [part for part, of in found.items() if of[0].p < CHANCE / len(found)]
        if not sure:
            return
        part = max(sure, key=lambda part: found[part][0].errors)
        of, own, least = found[part]
        left = [row for row in left if part not in row.parts]
        usual = [abs(other.gain) for one, (other, *_) in found.items()
                 if one.kind == part.kind and one != part]  # fmt: skip
        least = max(least, ENOUGH_PEERS * statistics.median(usual or [0.0]))
        if of.gain > max(least, _unrest(own, rows, part)):
            yield SmallLoss(part, of.gain, own)


def _compared(
    rows: Sequence[Row], parts: frozenset[Part], noise: Mapping[Hashable, Hashable]
) -> Iterator[tuple[Part, tuple[Excess, tuple[Row, ...], float]]]:
    """Yields each part with its excess of loss, the cells that show it, and the least loss that
    counts: the fewer peers a part has, the less they show what is usual."""
    logs = {row: -math.log(row.figure) for row in rows}
    usual = {of: one.mean for of, one in moments((row.peers, logs[row]) for row in rows).items()}
    values = {row: (row.peers, logs[row] - usual[row.peers]) for row in rows}
    whole = moments(values.values())
    by_class = grouped((row.peers, row.parts & parts) for row in rows)
    kinds: dict[Hashable, Counter[Kind]]
    kinds = {of: Counter(part.kind for part in frozenset().union(*some))
             for of, some in by_class.items()}  # fmt: skip
    touching = grouped((part, row) for row in rows for part in row.parts & parts)
    for part, own in touching.items():
        peers: dict[Hashable, int]
        peers = {of: kinds[of][part.kind] - 1 for of in {row.peers for row in own}}
        inside = moments(values[row] for row in own if peers[row.peers])
        outside = {of: whole[of].without(one) for of, one in inside.items() if one.n < whole[of].n}
        found = excess(inside, outside, noise)
        if found is not None and sum(one.n for one in inside.values()) > ENOUGH_PEERS:
            most = max(peers[of] for of in found.classes)
            least = SMALL_LOSS if most >= ENOUGH_PEERS else LEAST_LOSS
            shown = tuple(row for row in own if row.peers in found.classes)
            yield part, (found, shown, -math.log1p(-least))


def _unrest(own: Sequence[Row], rows: Sequence[Row], part: Part) -> float:
    """Returns how much more the part's cells scatter than their peers. It is the root of the
    difference of variances. Such scatter alone lowers the total of several transfers."""
    classes = {row.peers for row in own}
    beside = [row for row in rows if row.peers in classes and part not in row.parts]
    one, other = (statistics.median(scatter_of(row.case) for row in side) for side in (own, beside))
    return math.sqrt(max(0.0, one**2 - other**2))


Events = Sequence[tuple[Hashable, tuple[int, int]]]
"""The events and the samples of cells, each with a key that is equal for the cells of a class."""


def more_events(inside: Events, outside: Events) -> float:
    """Returns the probability that chance alone gives a part's cells so many events: in all of
    their samples, or in so many of the cells. Cells of many samples show more in the samples, and
    many cells show more among themselves."""
    within, beside = grouped(inside), grouped(outside)
    both = [(within[of], beside[of]) for of in within if of in beside]
    return min(_in_samples(both), _in_cells(both))


_Sides = Sequence[tuple[Sequence[tuple[int, int]], Sequence[tuple[int, int]]]]
"""The events and samples of the cells that use a part, and of the others, by class."""


def _in_cells(both: _Sides) -> float:
    """Returns the probability that so many of the cells have events (Fisher's exact test, over all
    classes together)."""
    chances, shown = [1.0], 0
    for touching, others in both:
        inside, every = len(touching), len(touching) + len(others)
        shown += sum(events > 0 for events, _ in touching)
        having = sum(events > 0 for events, _ in (*touching, *others))
        summed = [0.0] * (len(chances) + inside)
        for at, chance in enumerate(chances):
            for more in range(inside + 1):
                ways = math.comb(having, more) * math.comb(every - having, inside - more)
                summed[at + more] += chance * (ways / math.comb(every, inside))
        chances = summed
    return math.fsum(chances[shown:])


def _in_samples(both: _Sides) -> float:
    """Returns an upper bound (Chernoff's) of the probability of so many events, if all samples of a
    class are equally likely to have one. Events that come in bursts count less: their numbers are
    divided by their dispersion."""
    burst = _dispersion([side for sides in both for side in sides])
    totals = [(*map(sum, zip(*one, strict=True)), *map(sum, zip(*other, strict=True)))
              for one, other in both]  # fmt: skip
    occurred = sum(events for events, *_ in totals) / burst
    sums = [((mine + theirs) / burst, n / (n + m)) for mine, n, theirs, m in totals]
    if occurred <= sum(number * share for number, share in sums):
        return 1.0

    def log_of(tilt: float) -> float:
        return sum(n * math.log1p(s * math.expm1(tilt)) for n, s in sums) - tilt * occurred

    low, high = 0.0, 50.0  # it falls with the tilt, and then rises
    for _ in range(80):
        one, other = low + (high - low) / 3, high - (high - low) / 3
        low, high = (low, other) if log_of(one) < log_of(other) else (one, high)
    return math.exp(min(0.0, log_of(low)))


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

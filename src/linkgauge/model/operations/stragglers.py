"""Finds the rank that enters a collective last. It does not wait, so its time is the shortest."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Sequence
from statistics import median

import msgspec

from linkgauge.model.documents.result import CellResult

from .collective import Collective

SIGNIFICANCE = 0.01
"""The probability that a rank is returned although all ranks come last equally often."""
LEAST_WAIT = 0.01
"""The least share of a collective's time that counts as a wait."""


class Straggler(msgspec.Struct, frozen=True):
    """A rank that came last `last` times in `iterations` iterations. `wait` is the median of the
    seconds that the others waited."""

    rank: int
    last: int
    iterations: int
    wait: float


def straggler_of(cell: CellResult) -> Straggler | None:
    """Returns a collective's straggler (the rank that clearly comes last) or None. If several
    groups of ranks have a straggler, returns the one that makes its group wait longest."""
    if not isinstance(cell.operation, Collective) or not cell.iterations:
        return None
    seconds = {own.rank: own.samples for own in cell.iterations}
    groups = cell.operation.groups(len(cell.transfers))
    found = [
        one
        for group in groups
        if seconds.keys() >= set(group)
        and (one := find_straggler(group, [seconds[rank] for rank in group])) is not None
    ]
    return max(found, key=lambda one: one.wait, default=None)


def find_straggler(ranks: Sequence[int], seconds: Sequence[Sequence[float]]) -> Straggler | None:
    """Returns the rank that comes last more often than by chance (p at most 1 %) and makes the
    others wait for at least 1 % of an iteration. Returns None if there is no such rank."""
    iterations = list(zip(*seconds, strict=True))
    if len(ranks) < 2 or not iterations:
        return None
    waits: defaultdict[int, list[float]] = defaultdict(list)
    for own in iterations:
        # The rank that comes last waits for no other rank: its time is the shortest.
        shortest, second = sorted(own)[:2]
        if shortest < second:
            others = [one for one in own if one != shortest]
            waits[own.index(shortest)].append(median(others) - shortest)
    counts = Counter({place: len(found) for place, found in waits.items()})
    if not counts:
        return None
    ((place, last),) = counts.most_common(1)
    chance = len(ranks) * at_least(last, len(iterations), 1 / len(ranks))
    wait = median(waits[place])
    if chance > SIGNIFICANCE or wait < LEAST_WAIT * median(map(median, iterations)):
        return None
    return Straggler(ranks[place], last, len(iterations), wait)


def at_least(successes: int, trials: int, share: float) -> float:
    each = math.log(share), math.log1p(-share)
    return math.fsum(
        math.exp(
            math.lgamma(trials + 1) - math.lgamma(count + 1) - math.lgamma(trials - count + 1)
            + count * each[0] + (trials - count) * each[1]
        )
        for count in range(successes, trials + 1)
    )  # fmt: skip

"""The signed-rank test (F. Wilcoxon, Biometrics Bulletin 1, 1945) of two settings in the same
rounds, with Hodges and Lehmann's estimate (Annals of Mathematical Statistics 34, 1963)."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Sequence
from functools import cache
from itertools import accumulate, combinations_with_replacement

import msgspec

from .changes import adjusted

MOST_ROUNDS = 200
"""The most rounds for which the exact distribution is computed. More rounds take long."""


class Change(msgspec.Struct, frozen=True):
    """The change of a figure from a first setting to a second.

    ratio: The second figure divided by the first.
    low: The low end of the ratio's interval; null if there are too few rounds for an interval.
    high: The high end of the ratio's interval; null if there are too few rounds for an interval.
    p: The probability of a change at least this clear if nothing changed.
    rounds: The number of rounds with both figures.
    holm: `p` adjusted for all cells that were compared; null in files of earlier versions."""

    ratio: float
    low: float | None
    high: float | None
    p: float
    rounds: int
    holm: float | None = None

    @property
    def is_known(self) -> bool:
        return self.low is not None and self.high is not None

    @property
    def is_proven(self) -> bool:
        return self.low is not None and self.high is not None and not self.low <= 1 <= self.high


def change(pairs: Sequence[tuple[float, float]], significance: float) -> Change | None:
    """Returns the change over pairs of figures; None for 0 or too many pairs, or a figure ≤ 0."""
    if not 1 <= len(pairs) <= MOST_ROUNDS or any(figure <= 0 for pair in pairs for figure in pair):
        return None
    logs = [math.log(second) - math.log(first) for first, second in pairs]
    means = sorted((one + other) / 2 for one, other in combinations_with_replacement(logs, 2))
    # A logarithm of 0 speaks for either side.
    least = min(sum(mean >= 0 for mean in means), sum(mean <= 0 for mean in means))
    rank = _rank(len(logs), significance)
    return Change(
        ratio=math.exp(statistics.median(means)),
        low=math.exp(means[rank - 1]) if rank else None,
        high=math.exp(means[-rank]) if rank else None,
        p=min(1.0, 2 * _share(len(logs), least)),
        rounds=len(logs),
    )


def changes(
    every: Iterable[Sequence[tuple[float, float]]], significance: float
) -> list[Change | None]:
    return adjusted([change(pairs, significance) for pairs in every])


def least_rounds(significance: float) -> int:
    """Returns the fewest rounds n that prove a difference: 2 × 2^-n ≤ `significance`."""
    return next(n for n in range(1, 1100) if 2.0 ** (1 - n) <= significance)


def _rank(rounds: int, significance: float) -> int:
    most = rounds * (rounds + 1) // 2
    return next(rank for rank in range(most) if 2 * _share(rounds, rank) > significance)


def _share(rounds: int, sum_of_ranks: int) -> float:
    below = _cumulative(rounds)
    return below[min(sum_of_ranks, len(below) - 1)] / (1 << rounds)


@cache
def _cumulative(rounds: int) -> tuple[int, ...]:
    sets = [1]
    for rank in range(1, rounds + 1):
        longer = sets + [0] * rank
        for total, count in enumerate(sets):
            longer[total + rank] += count
        sets = longer
    return tuple(accumulate(sets))

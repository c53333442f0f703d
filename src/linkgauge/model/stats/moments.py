"""Computes statistics that leave some values out, without another pass over the rest."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple


class Moments(NamedTuple):
    """Sums of values and squares. Far from 0, digits are lost: give logarithms or differences."""

    n: int
    sum: float
    squares: float

    @staticmethod
    def over(values: Iterable[float]) -> Moments:
        own = tuple(values)
        return Moments(len(own), math.fsum(own), math.fsum(one * one for one in own))

    def without(self, other: Moments) -> Moments:
        return Moments(self.n - other.n, self.sum - other.sum, self.squares - other.squares)

    @property
    def mean(self) -> float:
        return self.sum / self.n

    @property
    def rest(self) -> float:
        return max(0.0, self.squares - self.sum**2 / self.n)


def median_without(ordered: Sequence[float], places: Iterable[int]) -> float:
    out = sorted(places)
    left = len(ordered) - len(out)
    middle = [(left - 1) // 2, left // 2]
    for place in out:
        middle = [at + (at >= place) for at in middle]
    return (ordered[middle[0]] + ordered[middle[1]]) / 2

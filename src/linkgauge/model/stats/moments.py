"""Sums of values, from which some values can be left out without adding the rest again."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from operator import mul
from typing import NamedTuple

import msgspec

LEAST = 1e-4
"""The least relative standard deviation of a figure from run to run. Smaller differences are not
distinguished."""


class Moments(NamedTuple):
    """The count, sum and sum of squares of values. Large values lose digits: give differences."""

    n: int
    sum: float
    squares: float

    @staticmethod
    def over(values: Iterable[float]) -> Moments:
        own = tuple(values)
        return Moments(len(own), math.fsum(own), math.fsum(map(mul, own, own)))

    def without(self, other: Moments) -> Moments:
        return Moments(self.n - other.n, self.sum - other.sum, self.squares - other.squares)

    @property
    def mean(self) -> float:
        return self.sum / self.n

    @property
    def rest(self) -> float:
        return max(0.0, self.squares - self.sum**2 / self.n)


class Spread(msgspec.Struct, frozen=True):
    """The variance of a figure between runs, with its `degrees` of freedom. `alone` is another
    estimate, such as by the cell's runs alone. `alone` is right for a share `doubted` of cells."""

    variance: float
    degrees: float
    alone: Spread | None = None
    doubted: float = 0.0

    @property
    def deviation(self) -> float:
        return math.sqrt(self.variance)


def median_without(ordered: Sequence[float], places: Iterable[int]) -> float:
    out = sorted(places)
    left = len(ordered) - len(out)
    middle = [(left - 1) // 2, left // 2]
    for place in out:
        middle = [at + (at >= place) for at in middle]
    return (ordered[middle[0]] + ordered[middle[1]]) / 2

"""Computes percentiles of many values in little memory."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from itertools import accumulate

ERROR = 0.002
"""The relative error of a quantile."""
_GAMMA = (1 + ERROR) / (1 - ERROR)
_LOG = math.log(_GAMMA)
_ZERO = -(1 << 20)
"""The bin of 0: its middle is 0, and all other bins are above it."""


class Sketch:
    """A summary of values that has quantiles within `ERROR` (DDSketch, C. Masson et al., 2019).
    Values that span a factor of ten million have about 4,000 bins."""

    def __init__(self) -> None:
        self.count = 0
        self.least, self.most = math.inf, -math.inf
        self._bins: Counter[int] = Counter()

    def add(self, values: Iterable[float]) -> None:
        for value in values:
            self.count += 1
            self.least, self.most = min(self.least, value), max(self.most, value)
            self._bins[math.ceil(math.log(value) / _LOG) if value > 0 else _ZERO] += 1

    def quantile(self, fraction: float) -> float | None:
        if not self.count:
            return None
        rank, keys = fraction * (self.count - 1), sorted(self._bins)
        seen = accumulate(self._bins[key] for key in keys)
        key = next(key for key, count in zip(keys, seen, strict=True) if count > rank)
        return min(max(2 * _GAMMA**key / (_GAMMA + 1), self.least), self.most)

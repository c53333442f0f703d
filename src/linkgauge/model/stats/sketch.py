"""Computes percentiles of many values in little memory."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable

ERROR = 0.002
"""The relative error of a quantile."""
MOST_BINS = 4096
"""The most bins. If values span more, which is a factor of ten million, the lowest values share one
bin."""
_GAMMA = (1 + ERROR) / (1 - ERROR)
_LOG = math.log(_GAMMA)
_ZERO = -(1 << 20)
"""The bin of 0: its middle is 0, and all other bins are above it."""


class Sketch:
    """A summary of values that has quantiles within `ERROR` (DDSketch, C. Masson et al., 2019)."""

    def __init__(self) -> None:
        self.count = 0
        self.least, self.most = math.inf, -math.inf
        self._bins: Counter[int] = Counter()

    def add(self, values: Iterable[float]) -> None:
        for value in values:
            self.count += 1
            self.least, self.most = min(self.least, value), max(self.most, value)
            self._bins[math.ceil(math.log(value) / _LOG) if value > 0 else _ZERO] += 1
        if len(self._bins) > MOST_BINS:
            self._collapse()

    def _collapse(self) -> None:
        ordered = sorted(self._bins)
        floor = ordered[len(ordered) - MOST_BINS]
        for key in ordered[: len(ordered) - MOST_BINS]:
            self._bins[floor] += self._bins.pop(key)

    def quantile(self, fraction: float) -> float | None:
        if not self.count:
            return None
        rank = fraction * (self.count - 1)
        seen = 0
        for key in sorted(self._bins):
            seen += self._bins[key]
            if seen > rank:
                middle = 2 * _GAMMA**key / (_GAMMA + 1)
                return min(max(middle, self.least), self.most)
        return self.most

"""Bounds how clear a change in an interval of a series can be, so that change_points.py searches
few of its intervals. A bound may be too large, and is never too small."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from operator import sub

LEAST = 3
"""The fewest runs on each side of a change."""
LONGEST = 12
"""The most runs of a stretch that is found as a whole, with both ends. The ends of longer stretches
are found separately."""
_SHORT = 64
"""The longest interval that is bounded by the scatter of neighbours."""
_BLOCK = 32
"""The number of sums that are bounded together."""


def dips(begin: int, end: int) -> Iterator[tuple[int, range]]:
    """Yields the lengths of stretches within an interval after which the level may come back, each
    with the positions at which such a stretch may begin."""
    for length in range(LEAST, LONGEST + 1):
        if firsts := range(begin + LEAST, end - LEAST - length + 1):
            yield length, firsts


class ChangeBounds:
    """The bounds of a series. `sums` are the running sums of its `values`, from 0. The mean of the
    values is 0. `of_length` has, by length, the sums of all stretches that a dip may be."""

    def __init__(self, values: Sequence[float], sums: Sequence[float]) -> None:
        self._sums = sums
        self.of_length = {k: list(map(sub, sums[k:], sums)) for k in range(LEAST, LONGEST + 1)}
        self._extremes = {k: _extremes(of) for k, of in self.of_length.items()}
        self._bows = list(_bows(sums))
        self._scatter = [
            a * a + b * b + c * c - (a + b + c) ** 2 / 3
            for a, b, c in zip(values, values[1:], values[2:], strict=False)
        ]
        """The sum of squares of each three neighbours about their mean."""

    def explained(self, begin: int, end: int, total: float) -> tuple[float, float]:
        """Returns the most that a change and a dip can explain of an interval's sum of squares,
        which is `total`."""
        if end - begin > _SHORT:
            return self._split(begin, end), self._dip(begin, end)
        # No level ends within the first or the last three values, and the two ends of a stretch lie
        # in at most two of the threes between. The scatter within all others remains.
        between = sorted(self._scatter[begin + LEAST : end - 2 * LEAST + 1 : LEAST])
        most = total - self._scatter[begin] - self._scatter[end - LEAST] - sum(between[:-2])
        return most, most

    def _split(self, begin: int, end: int) -> float:
        size, whole = end - begin, self._sums[end]
        mean, most = (whole - self._sums[begin]) / size, 0.0
        for block in range((begin + LEAST) // _BLOCK, (end - LEAST) // _BLOCK + 1):
            first, last, bow = self._bows[block]
            far = bow + max(abs(whole - self._sums[at] - (end - at) * mean) for at in (first, last))
            first, last = max(first, begin + LEAST), min(last, end - LEAST)
            edge = first if first + last < begin + end else last
            most = max(most, far * far / ((end - edge) * (edge - begin)))
        return most * size

    def _dip(self, begin: int, end: int) -> float:
        size, most = end - begin, 0.0
        mean = (self._sums[end] - self._sums[begin]) / size
        for k, firsts in dips(begin, end):
            highs, lows = self._extremes[k]
            blocks = slice(firsts.start // _BLOCK, (firsts.stop - 1) // _BLOCK + 1)
            far = max(max(highs[blocks]) - k * mean, k * mean - min(lows[blocks]))
            most = max(most, far * far / (k * (size - k)))
        return most * size


def _extremes(values: Sequence[float]) -> tuple[list[float], list[float]]:
    """Returns the largest and the smallest value of each block of values."""
    blocks = [values[at : at + _BLOCK] for at in range(0, len(values), _BLOCK)]
    return list(map(max, blocks)), list(map(min, blocks))


def _bows(sums: Sequence[float]) -> Iterator[tuple[int, int, float]]:
    """Yields the first and the last place of each block of sums, with the largest distance of a sum
    from the line between these two."""
    for first in range(0, len(sums), _BLOCK):
        last = min(first + _BLOCK, len(sums)) - 1
        step = (sums[last] - sums[first]) / max(last - first, 1)
        line = sums[first] - first * step
        yield first, last, max(abs(sums[at] - line - at * step) for at in range(first, last + 1))

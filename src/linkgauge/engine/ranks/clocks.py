"""How far the clocks of ranks are ahead of rank 0's."""

from __future__ import annotations

import time
from collections.abc import Collection

import msgspec

from .commands import ReadClock
from .member_links import Links

EXCHANGES = 8
"""Questions to each rank, of which the fastest counts."""
FRESH = 5.0
"""Seconds after which clocks are compared anew: quartzes differ by up to 100 us in each."""
LEAD_SECONDS, MOST_LEAD_SECONDS = 2e-3, 0.1
"""A lead at first, and at most: each time that a member is late, it is twice as long."""


class Offset(msgspec.Struct, frozen=True):
    """A rank's monotonic clock is `ahead` seconds of rank 0's, give or take `unsure` seconds."""

    ahead: float
    unsure: float


def compare(links: Links, rank: int) -> Offset:
    """By Cristian's algorithm: the answer is from between the question and its arrival, in the
    middle but for at most half of the time between (F. Cristian, Probabilistic clock
    synchronization, 1989)."""
    found: list[Offset] = []
    for _ in range(EXCHANGES):
        asked = time.monotonic()
        there = links.one(rank, ReadClock(), float)
        heard = time.monotonic()
        found.append(Offset(there - (asked + heard) / 2, (heard - asked) / 2))
    return min(found, key=lambda offset: offset.unsure)


class Clocks:
    """Offsets of ranks, compared when they are needed and no longer fresh. Members are told
    `lead` seconds ahead when they start together."""

    def __init__(self, links: Links) -> None:
        self._links = links
        self.lead = LEAD_SECONDS
        self._known: dict[int, tuple[float, Offset]] = {}

    def ahead(self, ranks: Collection[int]) -> dict[int, float]:
        """Seconds by which each rank's clock is ahead. Where all have one clock, none is."""
        if len({self._links.ranks[rank].host for rank in (0, *ranks)}) == 1:
            return dict.fromkeys(ranks, 0.0)
        return {rank: self.of(rank).ahead for rank in ranks}

    def was_late(self) -> None:
        """The next start is told earlier."""
        self.lead = min(2 * self.lead, MOST_LEAD_SECONDS)

    def of(self, rank: int) -> Offset:
        at, offset = self._known.get(rank, (float("-inf"), Offset(0.0, 0.0)))
        if time.monotonic() - at > FRESH:
            offset = compare(self._links, rank)
            self._known[rank] = time.monotonic(), offset
        return offset

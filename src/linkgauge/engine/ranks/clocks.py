"""Measures how far the clocks of ranks are ahead of rank 0's clock."""

from __future__ import annotations

import time
from collections.abc import Collection

import msgspec

from .commands import ReadClock
from .member_links import Links

EXCHANGES = 8
"""The number of questions to each rank. The fastest answer counts."""
FRESH = 5.0
"""The seconds after which clocks are compared again. Quartz clocks drift by up to 100 us in this
time."""
LEAD_SECONDS, MOST_LEAD_SECONDS = 2e-3, 0.1
"""The lead in seconds at first, and the largest lead. The lead doubles each time that a member is
late. A member that is late at the largest lead lacks a CPU: no lead helps."""
PUNCTUAL = 32
"""The number of punctual starts in a row after which the lead is halved. Few starts are then late,
and a machine that was busy for a moment does not slow down the whole run. If the largest lead does
not help, the next `PUNCTUAL` starts keep the first lead."""


class Offset(msgspec.Struct, frozen=True):
    """How many seconds a rank's monotonic clock is ahead of rank 0's, and the largest error."""

    ahead: float
    unsure: float


def compare(links: Links, rank: int) -> Offset:
    """Estimates the offset of a rank's clock by Cristian's algorithm (Probabilistic clock
    synchronization, 1989). The clock is assumed to be read halfway between question and answer."""
    found: list[Offset] = []
    for _ in range(EXCHANGES):
        asked = time.monotonic()
        there = links.one(rank, ReadClock(), float)
        heard = time.monotonic()
        found.append(Offset(there - (asked + heard) / 2, (heard - asked) / 2))
    return min(found, key=lambda offset: offset.unsure)


class Clocks:
    """The offsets of ranks' clocks. Rank 0 announces each common start `lead` seconds ahead."""

    def __init__(self, links: Links) -> None:
        self._links = links
        self.lead = LEAD_SECONDS
        self._punctual = 0
        """The number of punctual starts in a row."""
        self._kept = 0
        """The number of coming starts that leave the lead as it is."""
        self._known: dict[int, tuple[float, Offset]] = {}

    def ahead(self, ranks: Collection[int]) -> dict[int, float]:
        """Returns the seconds each rank's clock is ahead of rank 0's; 0 if all share a machine."""
        if len({self._links.ranks[rank].host for rank in (0, *ranks)}) == 1:
            return dict.fromkeys(ranks, 0.0)
        return {rank: self.of(rank).ahead for rank in ranks}

    def started(self, *, late: bool) -> None:
        if self._kept:
            self._kept -= 1
            return
        self._punctual = 0 if late else self._punctual + 1
        if late and self.lead == MOST_LEAD_SECONDS:
            self.lead, self._kept = LEAD_SECONDS, PUNCTUAL
        elif late:
            self.lead = min(2 * self.lead, MOST_LEAD_SECONDS)
        elif self._punctual % PUNCTUAL == 0:
            self.lead = max(self.lead / 2, LEAD_SECONDS)

    def of(self, rank: int) -> Offset:
        at, offset = self._known.get(rank, (float("-inf"), Offset(0.0, 0.0)))
        if time.monotonic() - at > FRESH:
            offset = compare(self._links, rank)
            self._known[rank] = time.monotonic(), offset
        return offset

"""How far apart ranks started together, and the timing of what they did."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from linkgauge.backends.member import Ended
from linkgauge.backends.protocol import Pace, Timing

LATE_SECONDS = 1e-3
"""A start so long after the time that was told is late."""
APART = (1.0, 0.1, 0.01)
"""Shares of a sample's time: a figure reports the largest that the difference of its starts
exceeds."""


class Starts:
    """Of copies, by `places` the ranks that time them. `awaits_all` says whether a rank that times
    nothing holds others up if it starts late: behind the warm-up of what NCCL passes on, of flags,
    and beside what engines reach by themselves, it does not."""

    def __init__(self, places: Sequence[int], *, awaits_all: bool) -> None:
        self._places, self._awaits_all = places, awaits_all
        self.was_late = False
        """Whether the last start was later than was told: the next is to be told earlier."""
        self._apart: tuple[int, float] = (0, 0.0)
        """The most loops so far, and the greatest difference of their starts, as a share of the
        shortest copy's time for all of them."""

    def timing(self, ended: Mapping[int, Ended], at: float | None, loops: int) -> Timing:
        """That of all copies, of what each rank times; they started together `at` this time, if
        any, by the clock by which they say when they opened."""
        opened = {rank: one.opened for rank, one in ended.items()}
        if at is not None:
            self._judge(loops, opened, ended)
            self.was_late = max(opened.values()) - at > LATE_SECONDS
        count = len(self._places)
        seconds = [0.0] * count
        checksums: list[int | None] = [None] * count
        progress: list[tuple[float, ...]] = [()] * count
        first = min(opened[rank] for rank in self._places)
        for rank, one in ended.items():
            for place, own in one.seconds.items():
                seconds[place] = own
                checksums[place] = one.checksums.get(place)
                since = 0.0 if at is None else opened[rank] - first
                times = one.progress.get(place, (0.0, own))
                progress[place] = tuple(since + when for when in times)
        span = max(times[-1] for times in progress) - min(times[0] for times in progress)
        return Timing(tuple(seconds), span, tuple(checksums), tuple(progress))

    def _judge(self, loops: int, opened: Mapping[int, float], ended: Mapping[int, Ended]) -> None:
        """How far apart they started: the gates, and behind them the copies."""
        starts = [
            opened[rank] + min((times[0] for times in one.progress.values()), default=0.0)
            for rank, one in ended.items()
            if one.seconds or self._awaits_all
        ]
        shortest = min(s for one in ended.values() for s in one.seconds.values())
        apart = (max(starts) - min(starts)) / shortest
        most, before = self._apart
        if loops >= most:  # those of the warm-up do not count
            self._apart = loops, max(apart, before) if loops == most else apart

    def remarks(self) -> tuple[str, ...]:
        """What a reader of the figure must know of them."""
        passed = next((share for share in APART if self._apart[1] > share), None)
        if passed is None:
            return ()
        return (f"ranks started more than {passed:.0%} of a sample's time apart",)


def common_pace(paces: Sequence[Pace]) -> Pace:
    """A pace that suits all of them."""
    if len(paces) == 1:
        return paces[0]
    return Pace(
        seconds=max(pace.seconds for pace in paces),
        loops=max(pace.loops for pace in paces),
        most=min(pace.most for pace in paces),
        steps=paces[0].steps,
        rehearsed=paces[0].rehearsed,
    )

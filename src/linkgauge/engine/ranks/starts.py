"""Measures how far apart ranks start, and combines the timings of ranks."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from linkgauge.backends.protocol import SamplingPolicy, Timing

LATE_SECONDS = 1e-3
"""The delay from which a start is late."""
SKEWS = (1.0, 0.1, 0.01)
"""Limits of the difference between starts, as shares of a sample's time. A remark names the largest
limit that is exceeded."""


class RankTiming(NamedTuple):
    """A rank's timing. `opened` is the time of its start signal, by rank 0's clock. `now` is the
    time after its copies, by its own clock."""

    opened: float
    timing: Timing
    now: float


class Starts:
    """Records when copies start and combines their timings. `places` has the rank that times each
    copy. If `awaits_all` is true, starts of ranks without a copy count, too."""

    def __init__(self, places: Sequence[int], *, awaits_all: bool) -> None:
        self._places, self._awaits_all = places, awaits_all
        self.was_late = False
        """Whether the last start was late, so that the next one must be announced earlier."""
        self._skew: tuple[int, float] = (0, 0.0)
        """The largest number of loops so far. Also the largest difference between starts in samples
        of that many loops, as a share of the shortest copy's time."""

    def timing(self, ended: Mapping[int, RankTiming], at: float | None, loops: int) -> Timing:
        """Combines the ranks' timings. `at` is their agreed start time, or None."""
        if at is not None:
            self._judge(loops, ended)
            self.was_late = max(one.opened for one in ended.values()) - at > LATE_SECONDS
        first = min(ended[rank].opened for rank in self._places)
        numbers = {rank: itertools.count() for rank in ended}
        seconds, checksums, progress = [], [], []
        for rank in self._places:
            number, one = next(numbers[rank]), ended[rank].timing
            own = one.seconds[number]
            seconds.append(own)
            checksums.append(one.checksums[number] if one.checksums else None)
            since = 0.0 if at is None else ended[rank].opened - first
            times = one.progress[number] if one.progress else (0.0, own)
            progress.append(tuple(since + when for when in times))
        span = max(times[-1] for times in progress) - min(times[0] for times in progress)
        return Timing(tuple(seconds), span, tuple(checksums), tuple(progress))

    def _judge(self, loops: int, ended: Mapping[int, RankTiming]) -> None:
        starts = [
            one.opened + min((times[0] for times in one.timing.progress), default=0.0)
            for one in ended.values()
            if one.timing.seconds or self._awaits_all
        ]
        shortest = min(s for one in ended.values() for s in one.timing.seconds)
        skew = (max(starts) - min(starts)) / shortest
        most, before = self._skew
        if loops >= most:  # those of the warm-up do not count
            self._skew = loops, max(skew, before) if loops == most else skew

    def remarks(self) -> tuple[str, ...]:
        passed = next((share for share in SKEWS if self._skew[1] > share), None)
        if passed is None:
            return ()
        return (f"ranks started more than {passed:.0%} of a sample's time apart",)


def common_policy(policies: Sequence[SamplingPolicy]) -> SamplingPolicy:
    if len(policies) == 1:
        return policies[0]
    return SamplingPolicy(
        seconds=max(policy.seconds for policy in policies),
        loops=max(policy.loops for policy in policies),
        most=min(policy.most for policy in policies),
        steps=policies[0].steps,
        rehearsed=policies[0].rehearsed,
    )

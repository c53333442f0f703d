"""Groups of several backends as one, and groups whose progress is recorded."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import ExitStack

from msgspec.structs import replace

from linkgauge.backends.protocol import MOST_BATCHES, Group, SamplingPolicy, Timing

from .sampler import marks_of


class CombinedGroup:
    """Groups of copies that run at the same time, each group on another backend. `places` has the
    indices of each group's copies. `opened` closes all groups. `lasting` is how many seconds the
    copies run if all are endless, else 0. The host times the total, as backends' clocks differ."""

    policy = SamplingPolicy()

    def __init__(
        self,
        groups: Sequence[Group],
        places: Sequence[Sequence[int]],
        opened: ExitStack,
        lasting: float = 0.0,
    ) -> None:
        self._groups = groups
        self._places = places
        self._opened = [0.0] * len(groups)
        self._lasting = lasting
        self.close = opened.close

    @property
    def most_loops(self) -> int:
        return min(group.most_loops for group in self._groups)

    def arm(self, loops: int, batches: int = 1) -> None:
        for group in self._groups:
            group.arm(loops, batches)

    def open(self) -> None:
        # A group that cannot hold all loops enqueues the rest when opened, which takes time.
        for number in sorted(range(len(self._groups)), key=lambda n: -self._groups[n].most_loops):
            self._opened[number] = time.monotonic()
            self._groups[number].open()

    def wait(self) -> Timing:
        if self._lasting:
            time.sleep(self._lasting)
        timings = [group.wait() for group in self._groups]
        first = min(self._opened)
        span = time.monotonic() - first
        placed = sorted(
            (place, at, number)
            for at, places in enumerate(self._places)
            for number, place in enumerate(places)
        )
        return Timing(
            seconds=tuple(timings[at].seconds[number] for _, at, number in placed),
            span=span,
            checksums=tuple(timings[at].checksums[number] for _, at, number in placed),
            progress=tuple(
                tuple(end + self._opened[at] - first for end in timings[at].progress[number])
                for _, at, number in placed
            ),
        )


class TrackedGroup:
    """Copies whose progress is recorded: the times at which the batches of each copy end."""

    def __init__(self, group: Group) -> None:
        self._group = group
        self.wait = group.wait
        self.open = group.open
        self.close = group.close
        self.policy = replace(group.policy, batches=1, sustained=True)

    @property
    def most_loops(self) -> int:
        most = self._group.most_loops
        return most if most <= MOST_BATCHES else most // MOST_BATCHES * MOST_BATCHES

    def arm(self, loops: int, batches: int = 1) -> None:
        marks = marks_of(loops * batches)
        self._group.arm(loops * batches // marks, marks)

"""Groups of several backends as one: host threads and a device's engines at the same time; and
host threads that have nobody to wait for."""

from __future__ import annotations

import time
from collections.abc import Sequence

from linkgauge.backends.base import Group, Timing


class JoinedGroup:
    """Arms all of its groups, then opens one gate right after the other, and waits for them in
    their order: the last one's endless copies end when the others have.

    `places` tells, for each group, where its copies stand among all. Each copy is timed by its own
    backend; the span is the host's, from the first gate's opening to the last group's end, because
    the backends' clocks need not agree: it includes the launch.
    """

    def __init__(self, groups: Sequence[Group], places: Sequence[Sequence[int]]) -> None:
        self._groups = groups
        self._places = places
        self._opened = [0.0] * len(groups)

    @property
    def most_loops(self) -> int:
        return min(group.most_loops for group in self._groups)

    def arm(self, loops: int, laps: int = 1) -> None:
        for group in self._groups:
            group.arm(loops, laps)

    def open(self) -> None:
        # One that cannot hold all loops enqueues the rest when opened, which takes its time.
        for number in sorted(range(len(self._groups)), key=lambda n: -self._groups[n].most_loops):
            self._opened[number] = time.monotonic()
            self._groups[number].open()

    def wait(self) -> Timing:
        timings = [group.wait() for group in self._groups]
        first = min(self._opened)
        span = time.monotonic() - first
        placed = {
            place: (
                timing.seconds[number],
                timing.checksums[number],
                tuple(at + opened - first for at in timing.progress[number]),
            )
            for places, timing, opened in zip(self._places, timings, self._opened, strict=True)
            for number, place in enumerate(places)
        }
        merged = [placed[place] for place in sorted(placed)]
        return Timing(
            seconds=tuple(seconds for seconds, _, _ in merged),
            span=span,
            checksums=tuple(checksum for _, checksum, _ in merged),
            progress=tuple(progress for _, _, progress in merged),
        )

    def close(self) -> None:
        """All of them, whatever befalls one."""
        failure: Exception | None = None
        for group in self._groups:
            try:
                group.close()
            except Exception as error:  # noqa: BLE001  # told once the others are closed
                failure = failure or error
        if failure is not None:
            raise failure


class LastingGroup:
    """A group of endless copies alone: they go on for so many seconds."""

    def __init__(self, group: Group, seconds: float) -> None:
        self._group = group
        self._seconds = seconds
        self.most_loops = group.most_loops

    def arm(self, loops: int, laps: int = 1) -> None:
        self._group.arm(loops, laps)

    def open(self) -> None:
        self._group.open()

    def wait(self) -> Timing:
        time.sleep(self._seconds)
        return self._group.wait()

    def close(self) -> None:
        self._group.close()

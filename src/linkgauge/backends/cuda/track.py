"""A work of a group with its streams, its start event and its progress."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

from linkgauge.model.errors import BackendError

from .device import CudaDevice
from .gate import StartGate
from .work import Interference, RecordedWork, StreamWork

NewEvent = Callable[[CudaDevice], Any]
"""Makes an event that lives as long as the group."""
Step = tuple[int, bool]
"""A number of loops, and whether a lap ends with them."""


class Track:
    """Its first stream has an event at the opening of its gate, at the end of its warm-up, at its
    start, after each lap and at its end. A kernel that carries out all laps in one launch records
    them itself; interference is timed only as a whole."""

    def __init__(self, work: StreamWork, streams: Sequence[Any], event: NewEvent) -> None:
        self.work = work
        self.streams = streams
        self.device = work.device
        self.opened, self.warm, self.start, self.end = (event(work.device) for _ in range(4))
        self._event = event
        self._spare: list[Any] = []
        self._laps: list[Any] = []
        self._recorded: RecordedWork | None = None

    def arm(self, gate: StartGate, laps: int, whole: bool) -> None:
        """Enqueues the gate and then the warm-up, for `laps` laps; `whole` means that all of them
        are enqueued at once."""
        self.device.enter()
        work = self.work
        self._laps.clear()
        self._recorded = work if whole and isinstance(work, RecordedWork) else None
        opened = 0
        if self._recorded is not None:
            self._recorded.marks.laps.value = laps
            self._recorded.marks.reset(self.streams[0])
            opened = self._recorded.marks.opened
        elif laps > 1 and not isinstance(work, Interference):
            while len(self._spare) < laps:
                self._spare.append(self._event(self.device))
            self._laps = self._spare[:laps]
        gate.enqueue(self.device, self.streams[0], opened)
        self.record(self.opened)
        if work.warm_up:
            work.enqueue(self.streams, work.warm_up)

    def enqueue(self, steps: Sequence[Step], lap: int) -> None:
        """Enqueues steps, the first of them in lap `lap`."""
        self.device.enter()
        loops = sum(count for count, _ in steps)
        if self._recorded is not None:
            self._recorded.enqueue_recorded(self.streams, loops)
        elif not self._laps:
            self.work.enqueue(self.streams, loops)
        else:
            for count, ends in steps:
                self.work.enqueue(self.streams, count)
                if ends:
                    self.record(self._laps[lap])
                    lap += 1

    def record(self, event: Any) -> None:
        """Records an event in the current context: enter() its device first."""
        self.device.driver.call("cuEventRecord", event, self.streams[0])

    def progress(self, elapsed: Callable[[Any, Any], float]) -> tuple[float, ...]:
        """Its start and the end of each lap, in seconds since its gate opened; only its start and
        end if it does not record laps."""
        if self._recorded is not None:
            return self._recorded.marks.read()
        ends = self._laps or [self.end]
        return tuple(elapsed(self.opened, event) for event in (self.start, *ends))

    def close(self) -> None:
        # Fails on a lost device, which has already been reported.
        with suppress(BackendError):
            self.work.close()

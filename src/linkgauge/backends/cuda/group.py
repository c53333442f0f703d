"""Runs copies and kernels at the same time, and times them by events. A gate (start signal) holds
all streams back until all work is enqueued. Then each stream warms up. The first stream records its
start when all streams are warm or, if `aligned` is false, when it is warm itself, as in
nvbandwidth's doMemcpyCore. Every other stream waits for this event, and then records its start. At
the end, the first stream waits for all streams and records the group's end. A stream waits only for
events that were enqueued earlier, so streams with the same hardware queue cannot deadlock."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from typing import Any, Literal

from linkgauge.backends.protocol import MOST_BATCHES, Gated, SamplingPolicy, Timing, run
from linkgauge.model.errors import BackendError

from .device import CudaDevice
from .driver import Driver
from .gate import DEADLINE_SECONDS, StartGate
from .settings import IN_PLACE_LOOPS
from .work import Recorder, StreamWork

# A work of a group with its streams, its start event and its progress.

NewEvent = Callable[[CudaDevice], Any]
"""A function that creates an event for the life of the group."""
Step = tuple[int, bool]
"""A number of loops, and whether a batch ends after them."""


class Track:
    def __init__(self, work: StreamWork, streams: Sequence[Any], event: NewEvent) -> None:
        self.work = work
        self.streams = streams
        self.device = work.device
        self.opened, self.warm, self.start, self.end = (event(work.device) for _ in range(4))
        self._event = event
        self._spare: list[Any] = []
        self._batches: list[Any] = []
        self._recorder: Recorder | None = None

    def arm(self, gate: StartGate, batches: int, whole: bool) -> None:
        self.device.enter()
        work = self.work
        self._batches.clear()
        self._recorder = work.recorder if whole else None
        opened = 0
        if self._recorder is not None:
            self._recorder.marks.batches.value = batches
            self._recorder.marks.reset(self.streams[0])
            opened = self._recorder.marks.opened
        elif batches > 1 and work.settle is None:
            while len(self._spare) < batches:
                self._spare.append(self._event(self.device))
            self._batches = self._spare[:batches]
        gate.enqueue(self.device, self.streams[0], opened)
        self.record(self.opened)
        if work.warm_up:
            work.enqueue(self.streams, work.warm_up)

    def enqueue(self, steps: Sequence[Step], batch: int) -> None:
        self.device.enter()
        loops = sum(count for count, _ in steps)
        if self._recorder is not None:
            self._recorder.enqueue(self.streams, loops)
        elif not self._batches:
            self.work.enqueue(self.streams, loops)
        else:
            for count, ends in steps:
                self.work.enqueue(self.streams, count)
                if ends:
                    self.record(self._batches[batch])
                    batch += 1

    def record(self, event: Any) -> None:
        self.device.driver.call("cuEventRecord", event, self.streams[0])

    def progress(self, elapsed: Callable[[Any, Any], float]) -> tuple[float, ...]:
        if self._recorder is not None:
            return self._recorder.marks.read()
        ends = self._batches or [self.end]
        return tuple(elapsed(self.opened, event) for event in (self.start, *ends))

    def close(self) -> None:
        # Fails on a lost device, which has already been reported.
        with suppress(BackendError):
            self.work.close()


QUEUE = 480
"""The largest number of operations behind a closed gate on one device. The driver's queues hold
about 1024. A call on a full queue waits for the device, but the device waits for the gate. If this
happens, the gate opens after GATE_SECONDS, and the next gate holds fewer loops."""
GATE_SECONDS = 2.0
"""Seconds after which a gate opens by itself. Enqueuing takes milliseconds, unless a call waits for
the gate."""
_OVERHEAD = 10
"""The queue entries of the gate, the events and the waits."""
_UNBOUNDED = 1 << 30
SAMPLE_SECONDS = 0.010
"""Seconds of a sample. About every fifth copy by a copy engine takes 9 µs more. Samples of few
copies would therefore vary too much."""
BATCHES = 32
"""The largest number of samples behind one gate. It limits how long the host waits."""
_MILLISECONDS = 1e-3


class CudaGroup(Gated):
    """Transfers that start together. Groups share streams, so only one may be armed at a time."""

    def __init__(
        self,
        driver: Driver,
        works: Sequence[StreamWork],
        *,
        aligned: bool = True,
        steady: bool = False,
    ) -> None:
        self.works = tuple(works)
        self._driver = driver
        self._aligned = aligned
        self._may_block = any(work.kind == "driver" or work.device.calls_wait for work in works)
        self._made = ExitStack()
        """Everything that `close` must release."""
        try:
            self._tracks = [
                Track(work, own, self._event)
                for work, own in zip(works, streams_of(works), strict=True)
            ]
            self._first = self._tracks[0]
            self._total = self._event(self._first.device)
            deadline = DEADLINE_SECONDS if self._may_block else GATE_SECONDS
            self._gate = StartGate([track.device for track in self._tracks], deadline)
        except BaseException:
            self._made.close()
            raise
        self._rest: list[list[Step]] = []
        """Batches that are enqueued after the gate has opened."""
        self._batch = 0
        """The next batch to enqueue."""
        self._kind = tuple((work.device.index, work.kind, work.entries) for work in works)
        self.most_loops = self._first.device.most_behind.get(self._kind) or most_loops(works)
        least = max(work.least_loops for work in works)
        batches = BATCHES if least < IN_PLACE_LOOPS else 1
        self.policy = SamplingPolicy(SAMPLE_SECONDS, least, batches, steady=steady)

    def arm(self, loops: int, batches: int = 1) -> None:
        """Enqueues up to `most_loops` loops behind the closed gate; `open` enqueues the rest."""
        super().arm(loops, batches)
        self._gate.shut()
        self._batch = 0
        behind, *self._rest = queued_parts(loops, batches, self.most_loops)
        try:
            for track in self._tracks:
                track.arm(self._gate, batches, whole=not self._rest)
            self._record_starts()
            self._enqueue(behind)
        except BackendError:
            self._abandon()
            raise

    def _enqueue(self, steps: Sequence[Step]) -> None:
        for track in self._tracks:
            track.enqueue(steps, self._batch)
        self._batch += sum(ends for _, ends in steps)
        if not self._rest:
            self._record_ends()

    def open(self) -> None:
        super().open()
        self._gate.open()
        while self._rest:
            self._enqueue(self._rest.pop(0))

    def wait(self) -> Timing:
        """Returns times from events. Raises BackendError if a device fails or a gate stays shut."""
        self._opened = bool(self._armed)  # the gate may have opened by itself
        loops, batches = self.pass_gate()
        self._first.device.call("cuEventSynchronize", self._total)
        seconds = None
        if self._gate.gave_up and not self._may_block:
            self._hold_less()
        else:
            seconds = self._settled(loops * batches)
        if seconds is None:
            return run(self, loops, batches)
        return Timing(
            seconds=seconds,
            span=self._elapsed(self._first.start, self._total),
            checksums=tuple(track.work.checksum() for track in self._tracks),
            progress=tuple(track.progress(self._elapsed) for track in self._tracks),
        )

    def _hold_less(self) -> None:
        # An enqueuing call waited for the device, so later gates hold half as many loops.
        if self.most_loops == 1:
            raise BackendError("gate", f"not opened within {GATE_SECONDS:g} s")
        self.most_loops //= 2
        self._first.device.most_behind[self._kind] = self.most_loops

    def _settled(self, loops: int) -> tuple[float, ...] | None:
        # None: an interfering copy ended before the measured one.
        seconds = [self._elapsed(track.start, track.end) for track in self._tracks]
        settled = [
            own if track.work.settle is None else track.work.settle(loops, own, seconds[0])
            for track, own in zip(self._tracks, seconds, strict=True)
        ]
        whole = tuple(own for own in settled if own is not None)
        return whole if len(whole) == len(settled) else None

    def close(self) -> None:
        if self._closed:
            return
        if self._armed:
            self._abandon()
        super().close()
        for track in self._tracks:
            track.close()
        self._made.close()

    def _event(self, device: CudaDevice) -> Any:
        def destroy() -> None:
            with suppress(BackendError):
                device.call("cuEventDestroy", event)

        flags = self._driver.enums.CUevent_flags.CU_EVENT_DEFAULT
        event = device.call("cuEventCreate", flags)
        self._made.callback(destroy)
        return event

    def _record_starts(self) -> None:
        first, *others = self._tracks
        if self._aligned:
            self._await([track for track in others if track.work.warm_up], "warm")
        first.device.enter()
        first.record(first.start)
        for track in others:
            track.device.call("cuStreamWaitEvent", track.streams[0], first.start, 0)
            track.record(track.start)

    def _record_ends(self) -> None:
        first, *others = self._tracks
        first.device.enter()
        first.record(first.end)
        self._await(others, "end")
        first.device.enter()
        first.record(self._total)

    def _await(self, tracks: Sequence[Track], event: Literal["warm", "end"]) -> None:
        for track in tracks:
            track.device.enter()
            track.record(getattr(track, event))
        self._first.device.enter()
        for track in tracks:
            wait = getattr(track, event)
            self._driver.call("cuStreamWaitEvent", self._first.streams[0], wait, 0)

    def _elapsed(self, start: Any, end: Any) -> float:
        return float(self._driver.call("cuEventElapsedTime", start, end)) * _MILLISECONDS

    def _abandon(self) -> None:
        self._gate.open()
        self._armed, self._opened = None, False
        self._rest.clear()
        for track in self._tracks:
            with suppress(BackendError):
                track.device.enter()
                for stream in track.streams:
                    self._driver.call("cuStreamSynchronize", stream)


def streams_of(works: Sequence[StreamWork]) -> list[list[Any]]:
    """Returns the streams of each work. No two works share a stream."""
    used: Counter[int] = Counter()
    streams = []
    for work in works:
        first = used[work.device.index]
        used[work.device.index] += work.streams
        streams.append([work.device.stream(first + i) for i in range(work.streams)])
    return streams


def most_loops(works: Sequence[StreamWork]) -> int:
    """Returns how many loops (besides warm-ups) fit behind the gate on every device, at least 1."""
    return min(
        _loops_within(QUEUE, [work for work in works if work.device is device])
        for device in {id(work.device): work.device for work in works}.values()
    )


def _loops_within(room: int, works: Sequence[StreamWork]) -> int:
    each = sum(work.entries[0] for work in works)
    if each == 0:
        return _UNBOUNDED
    fixed = sum(work.entries[1] for work in works) + len(works) * _OVERHEAD
    room -= fixed + sum(work.operations(work.warm_up) for work in works if work.warm_up)
    # An event follows every batch of each work.
    few = room // (each + len(works))
    return max(1, few if few <= MOST_BATCHES else (room - MOST_BATCHES * len(works)) // each)


def queued_parts(loops: int, batches: int, most: int) -> list[list[Step]]:
    """Splits batches of `loops` loops into parts (lists of steps) of at most `most` loops."""
    found: list[list[Step]] = [[]]
    room = most
    for _ in range(batches):
        left = loops
        while left:
            now = min(left, most)
            if now > room:
                found.append([])
                room = most
            left -= now
            room -= now
            found[-1].append((now, left == 0))
    return found

"""Works on streams that start together and are timed by events, on devices of CUDA and ROCm.

The host cannot set an event of torch. So the gate is a kernel that runs for some time (`_sleep`,
from torch's own tests); all works are enqueued behind the gate meanwhile. A sample counts only if
the gate was still closed when the last copy had been enqueued. Otherwise the sample is repeated
behind a longer gate. A warm-up follows the gate. When all streams are warm, the first stream
records its start. The other streams wait for this event and then record their own starts. After its
loops, each stream records an end. The first stream waits for all ends and records the end of the
group."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, Protocol

from linkgauge.backends.protocol import Copy, Gated, Pace, Timing
from linkgauge.backends.threaded import Worked
from linkgauge.model.errors import BackendError

from .buffer import own
from .runtime import TorchDevice, calling, current

# What a transfer enqueues: a copy of a tensor.

Streams = Sequence[tuple[TorchDevice, Any]]
"""The stream of each device that takes part (None for a device without streams), the owner's stream
first."""


class GatedWork(Protocol):
    """Work on the devices `units`. The first device carries out the work. `enqueue` puts loops on
    the devices' current streams."""

    units: tuple[TorchDevice, ...]

    def enqueue(self, loops: int) -> None: ...


class CopyWork:
    """A copy of one tensor of bytes to another by `copy_`, which torch turns into a memory copy.
    Between devices, torch also makes the destination's current stream wait for the copy. Such a
    copy therefore needs a stream of each device."""

    def __init__(self, units: Sequence[TorchDevice], copy: Copy) -> None:
        self.units = tuple(units)
        self._source = own(copy.source).tensor[: copy.size]
        self._destination = own(copy.destination).tensor[: copy.size]

    def enqueue(self, loops: int) -> None:
        move, source = self._destination.copy_, self._source
        with calling("Tensor.copy_"):
            for _ in range(loops):
                move(source, non_blocking=True)


def threaded(work: GatedWork, streams: Streams) -> Worked:
    """Returns the work in a form that a host thread carries out to its end. Each run makes its own
    streams current in its thread."""

    def run(loops: int) -> None:
        with current(streams):
            work.enqueue(loops)
        for unit, stream in streams:
            unit.finish(stream)

    return Worked(run)


def streams_of(works: Sequence[GatedWork]) -> list[Streams]:
    """Returns streams for each work. No stream is used by two works of the group."""
    used: dict[int, int] = {}
    found: list[Streams] = []
    for work in works:
        own_streams = []
        for unit in work.units:
            number = used.get(id(unit), 0)
            used[id(unit)] = number + 1
            own_streams.append((unit, unit.stream(number)))
        found.append(own_streams)
    return found


QUEUE = 800
"""The most operations behind the gate on one device. A queue with about 1024 operations is full,
and a call on a full queue blocks until the device proceeds."""
SAMPLE_SECONDS = 0.010
"""The seconds of a sample, as in backend cuda: events resolve half a microsecond, and some copies
take 9 µs more."""
LAPS = 16
"""The most samples behind one gate."""
_OVERHEAD = LAPS + 12
"""The operations in addition to a group's loops: events, waits, the warm-up."""
_BETWEEN = 4
"""Operations of a copy between devices, with the events by which torch orders them."""
_FIRST_GATE, _LONGEST_GATE = 2e-3, 0.5
"""The seconds of the first gate, and of the longest. Code that is loaded at first use takes long
only once."""
_MARGIN, _SURPLUS = 1.5, 5e-4
"""A gate lasts _MARGIN times as long as enqueuing took, plus _SURPLUS seconds. The margin doubles
after each gate that was too short: a gate counts cycles, and clocks rise under load."""
_SHRINKING = 0.95
"""The factor by which the margin shrinks after a gate that was long enough."""
_MOST_TRIES = 8
_MILLI = 1e-3


class WorkLane:
    """A work, with streams and events."""

    def __init__(self, work: GatedWork, streams: Streams) -> None:
        self.work, self.streams = work, streams
        self.unit, self.stream = streams[0]
        self.warm, self.start = self.unit.event(), self.unit.event()
        self._spare: list[Any] = []
        self.laps: list[Any] = []

    def enqueue(self, loops: int) -> None:
        with current(self.streams):
            self.work.enqueue(loops)

    def begin(self, laps: int) -> None:
        """Takes the events needed for `laps` laps."""
        while len(self._spare) < laps:
            self._spare.append(self.unit.event())
        self.laps = self._spare[:laps]

    def wait_for(self, event: Any) -> None:
        self.stream.wait_event(event)


class GatedGroup(Gated):
    """Works that all start behind one gate."""

    def __init__(self, works: Sequence[GatedWork], pace: Pace | None = None) -> None:
        with calling("torch.Event"):
            self._lanes = [WorkLane(*each) for each in zip(works, streams_of(works), strict=True)]
            self._gate, self._total = self._first.unit.event(), self._first.unit.event()
        self._hold, self._margin = _FIRST_GATE, _MARGIN
        self._held = False
        self.most_loops = most_loops(works)
        self.pace = pace or Pace(SAMPLE_SECONDS, laps=LAPS)

    @property
    def _first(self) -> WorkLane:
        return self._lanes[0]

    def open(self) -> None:
        """Closes the gate, enqueues all work behind the gate, and lets the gate end by itself."""
        super().open()
        self._held = self._enqueue(*(self._armed or (1, 1)))

    def wait(self) -> Timing:
        """Waits, and returns seconds as timed by events. Raises BackendError if a device failed, or
        if no gate lasted until all work was enqueued."""
        loops, laps = self.pass_gate()
        self._finish()
        for _ in range(_MOST_TRIES):
            if self._held:
                return self._timing()
            self._held = self._enqueue(loops, laps)
            self._finish()
        raise BackendError("gate", f"not closed for the {self._hold:.3g} s that enqueueing takes")

    def _enqueue(self, loops: int, laps: int) -> bool:
        """Enqueues all work. Returns whether the gate stayed closed until all work was enqueued or
        the queues were full. The next gate lasts as long as this enqueuing took."""
        with calling("enqueue"):
            began, held = time.monotonic(), None
            self._close_gate()
            self._warm_up()
            self._record_starts(laps)
            for lap in range(laps):
                left = loops
                while left:
                    left -= (now := min(left, self.most_loops))
                    for lane in self._lanes:
                        lane.enqueue(now)
                    if held is None and (left or lap + 1 == laps):
                        held, took = not self._gate.query(), time.monotonic() - began
                for lane in self._lanes:
                    lane.laps[lap].record(lane.stream)
            self._record_end()
        self._margin = max(_MARGIN, _SHRINKING * self._margin) if held else 2 * self._margin
        needed = took * self._margin + _SURPLUS
        self._hold = min(max(needed, _FIRST_GATE), _LONGEST_GATE)
        return bool(held)

    def _close_gate(self) -> None:
        first = self._first
        with current(first.streams):
            first.unit.sleep(self._hold)
        self._gate.record(first.stream)
        for lane in self._lanes:
            for _, stream in lane.streams:
                stream.wait_event(self._gate)

    def _warm_up(self) -> None:
        for lane in self._lanes:
            lane.enqueue(1)
            lane.warm.record(lane.stream)

    def _record_starts(self, laps: int) -> None:
        first, *others = self._lanes
        for lane in others:
            first.wait_for(lane.warm)
        first.start.record(first.stream)
        for lane in others:
            lane.wait_for(first.start)
            lane.start.record(lane.stream)
        for lane in self._lanes:
            lane.begin(laps)

    def _record_end(self) -> None:
        first, *others = self._lanes
        for lane in others:
            first.wait_for(lane.laps[-1])
        self._total.record(first.stream)

    def _finish(self) -> None:
        with calling("synchronize"):
            self._total.synchronize()
        for lane in self._lanes:
            for unit, stream in lane.streams:
                unit.finish(stream)

    def _timing(self) -> Timing:
        with calling("Event.elapsed_time"):
            progress = tuple(self._progress(lane) for lane in self._lanes)
            span = self._first.start.elapsed_time(self._total) * _MILLI
        return Timing(
            seconds=tuple(times[-1] - times[0] for times in progress),
            span=span,
            checksums=(None,) * len(progress),
            progress=progress,
        )

    def _progress(self, lane: WorkLane) -> tuple[float, ...]:
        """Returns the lane's start and the end of each lap, in seconds since the first start. The
        times are those of the lane's own device, because the clocks of devices differ."""
        same = lane.unit is self._first.unit
        at = self._first.start.elapsed_time(lane.start) * _MILLI if same else 0.0
        return at, *(at + lane.start.elapsed_time(end) * _MILLI for end in lane.laps)

    def close(self) -> None:
        """Waits for the devices of all lanes. No gate is closed at this point, because work is only
        enqueued within open() and wait()."""
        super().close()
        with suppress(BackendError):
            for lane in self._lanes:
                lane.unit.finish(lane.stream)
        self._lanes = []  # buffers that nothing else holds are free from here on


def most_loops(works: Sequence[GatedWork]) -> int:
    """Returns the number of loops that fit behind the gate on every device; at least one."""
    units = {id(unit): unit for work in works for unit in work.units}.values()
    each = _BETWEEN if any(len(work.units) > 1 for work in works) else 1
    counts = [sum(unit in work.units for work in works) for unit in units]
    return max(1, min((QUEUE // count - _OVERHEAD) // each for count in counts))

"""Runs work on several streams of CUDA or ROCm at once, timed by events. The gate (start signal) is
a kernel that runs for some time (`_sleep`, from torch's tests). If the kernel ends before all work
is enqueued, the sample is repeated with a longer gate."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, NamedTuple

from linkgauge.backends.iterations import Worked
from linkgauge.backends.protocol import Copy, Gated, SamplingPolicy, Timing, first_word
from linkgauge.model.errors import BackendError, Unsupported
from linkgauge.model.operations.operation import Operation

from . import content
from .buffer import own
from .runtime import TorchDevice, calling, current

# What a transfer enqueues: a copy of a tensor.

Streams = Sequence[tuple[TorchDevice, Any]]
"""Devices with their streams. The owner of the engine comes first. The stream is None if a device
has none."""


class GatedWork(NamedTuple):
    """Work on the devices `units`, of which the first owns the engine. `enqueue` puts a number of
    loops on the current streams of these devices."""

    units: tuple[TorchDevice, ...]
    enqueue: Callable[[int], object]


def repeated(units: Sequence[TorchDevice], name: str, call: Callable[[], object]) -> GatedWork:
    def enqueue(loops: int) -> None:
        with calling(name):
            for _ in range(loops):
                call()

    return GatedWork(tuple(units), enqueue)


def copying(units: Sequence[TorchDevice], copy: Copy) -> GatedWork:
    """Returns a copy. torch makes it wait for the streams of all its devices, the `units`."""
    source, destination = (own(end).tensor[: copy.size] for end in (copy.source, copy.destination))
    return repeated(units, "Tensor.copy_", partial(destination.copy_, source, non_blocking=True))


NO_READS = "torch has no operation that only reads memory and tells what it has read"


def by_kernel(unit: TorchDevice, copy: Copy, does: Operation) -> GatedWork:
    """Returns the work of a kernel. Raises Unsupported for a copy that only reads."""
    if copy.destination is None:
        raise Unsupported(f"{copy.transfer}: {NO_READS}")
    return repeated((unit,), "launch", _call(unit.torch, copy, does))


def _call(torch: Any, copy: Copy, does: Operation) -> Callable[[], object]:
    into = own(copy.destination).tensor[: copy.size]
    if copy.source is None:
        return _writes(torch, into, copy)
    work = does.array
    if work is None or not work.computes:
        kind = torch.uint8 if copy.size % content.WORD else torch.int64
        ends = own(copy.source).tensor[: copy.size].view(kind), into.view(kind)
        return partial(torch.add, ends[0], 0, out=ends[1])
    numbers = into.view(torch.float64)
    arrays = own(copy.source).tensor.view(torch.float64)
    b, c = arrays[: numbers.numel()], arrays[numbers.numel() : 2 * numbers.numel()]
    if work.kind == "scale":
        return partial(torch.mul, b, 3.0, out=numbers)
    return partial(torch.add, b, c, alpha=3.0 if work.kind == "triad" else 1.0, out=numbers)


def _writes(torch: Any, into: Any, copy: Copy) -> Callable[[], object]:
    whole = copy.size // content.WORD * content.WORD
    word = content.signed(first_word(copy.seed))
    fill = partial(into[:whole].view(torch.int64).fill_, word)
    if copy.size == whole:
        return fill
    left = list(word.to_bytes(content.WORD, "little", signed=True)[: copy.size - whole])
    end = partial(into[whole:].copy_, torch.tensor(left, dtype=torch.uint8, device=into.device))
    return lambda: (fill(), end())


def threaded(work: GatedWork, streams: Streams) -> Worked:
    def run(loops: int) -> None:
        with current(streams):
            work.enqueue(loops)
        for unit, stream in streams:
            unit.finish(stream)

    return Worked(run)


def streams_of(works: Sequence[GatedWork]) -> list[Streams]:
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
"""The largest number of operations behind the gate on one device. Queues hold about 1024, and calls
on a full queue wait for the device."""
SAMPLE_SECONDS = 0.010
"""Seconds of a sample, as in the backend `cuda`."""
BATCHES = 16
"""The largest number of samples behind one gate."""
_OVERHEAD = BATCHES + 12
"""The number of other operations behind the gate: events, waits and the warm-up."""
_BETWEEN = 4
"""The number of operations for one copy between devices, including torch's own events."""
_FIRST_GATE, _LONGEST_GATE = 2e-3, 0.5
"""Seconds of the first gate, and of the longest."""
_MARGIN, _SURPLUS = 1.5, 5e-4
"""A gate lasts _MARGIN times as long as enqueuing took, and _SURPLUS seconds more. After a gate
that was too short, the margin doubles."""
_SHRINKING = 0.95
"""The factor for the margin after a gate that was long enough."""
_MOST_TRIES = 8
_MILLI = 1e-3


class WorkLane:
    def __init__(self, work: GatedWork, streams: Streams) -> None:
        self.work, self.streams = work, streams
        self.unit, self.stream = streams[0]
        self.warm, self.start = self.unit.event(), self.unit.event()
        self._spare: list[Any] = []
        self.batches: list[Any] = []

    def enqueue(self, loops: int) -> None:
        with current(self.streams):
            self.work.enqueue(loops)

    def begin(self, batches: int) -> None:
        while len(self._spare) < batches:
            self._spare.append(self.unit.event())
        self.batches = self._spare[:batches]

    def wait_for(self, event: Any) -> None:
        self.stream.wait_event(event)


class GatedGroup(Gated):
    def __init__(self, works: Sequence[GatedWork]) -> None:
        with calling("torch.Event"):
            self._lanes = [WorkLane(*each) for each in zip(works, streams_of(works), strict=True)]
            self._gate, self._total = self._first.unit.event(), self._first.unit.event()
        self._hold, self._margin = _FIRST_GATE, _MARGIN
        self._held = False
        self.most_loops = most_loops(works)
        self.policy = SamplingPolicy(SAMPLE_SECONDS, batches=BATCHES)

    @property
    def _first(self) -> WorkLane:
        return self._lanes[0]

    def open(self) -> None:
        super().open()
        self._held = self._enqueue(*(self._armed or (1, 1)))

    def wait(self) -> Timing:
        """Returns times from events. Raises BackendError if a device fails or enqueuing is slow."""
        loops, batches = self.pass_gate()
        self._finish()
        for _ in range(_MOST_TRIES):
            if self._held:
                return self._timing()
            self._held = self._enqueue(loops, batches)
            self._finish()
        raise BackendError("gate", f"not closed for the {self._hold:.3g} s that enqueueing takes")

    def _enqueue(self, loops: int, batches: int) -> bool:
        # True if the gate stayed closed until all was enqueued. The next gate's time follows.
        with calling("enqueue"):
            began, held = time.monotonic(), None
            self._close_gate()
            self._warm_up()
            self._record_starts(batches)
            for batch in range(batches):
                left = loops
                while left:
                    left -= (now := min(left, self.most_loops))
                    for lane in self._lanes:
                        lane.enqueue(now)
                    if held is None and (left or batch + 1 == batches):
                        held, took = not self._gate.query(), time.monotonic() - began
                for lane in self._lanes:
                    lane.batches[batch].record(lane.stream)
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

    def _record_starts(self, batches: int) -> None:
        # The first stream records the start after all streams are warm. The others wait for it.
        first, *others = self._lanes
        for lane in others:
            first.wait_for(lane.warm)
        first.start.record(first.stream)
        for lane in others:
            lane.wait_for(first.start)
            lane.start.record(lane.stream)
        for lane in self._lanes:
            lane.begin(batches)

    def _record_end(self) -> None:
        first, *others = self._lanes
        for lane in others:
            first.wait_for(lane.batches[-1])
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
        """Returns the start and the batches' ends, in seconds since the group's start."""
        same = lane.unit is self._first.unit
        at = self._first.start.elapsed_time(lane.start) * _MILLI if same else 0.0
        return at, *(at + lane.start.elapsed_time(end) * _MILLI for end in lane.batches)

    def close(self) -> None:
        super().close()
        with suppress(BackendError):
            for lane in self._lanes:
                lane.unit.finish(lane.stream)
        self._lanes = []  # buffers that nothing else holds are free from here on


def most_loops(works: Sequence[GatedWork]) -> int:
    """Returns how many loops fit behind the gate on every device, at least 1."""
    units = {id(unit): unit for work in works for unit in work.units}.values()
    each = _BETWEEN if any(len(work.units) > 1 for work in works) else 1
    counts = [sum(unit in work.units for work in works) for unit in units]
    return max(1, min((QUEUE // count - _OVERHEAD) // each for count in counts))

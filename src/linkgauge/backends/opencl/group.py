"""How OpenCL transfers start together, and are timed by the device."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

import msgspec
import numpy as np
import pyopencl as cl

from linkgauge.backends.operations.overlap import FACTOR, SUMMAND, launched
from linkgauge.backends.protocol import Copy, Gated, Pattern, SamplingPolicy, Timing
from linkgauge.model.errors import Unsupported
from linkgauge.model.settings import Pieces

from .memory import OpenCLBuffer, Words, own, partial_sums
from .runtime import OpenCLDevice, calling, error_of

Enqueue = Callable[..., cl.Event]
"""A function that enqueues one command. Its argument `wait_for` is a list of events or None."""

_NANO = 1e-9
_QUEUE = 1000
"""The largest number of commands that wait for the gate. More might block."""


class Lane(msgspec.Struct, eq=False):
    """A transfer on its own queue. `commands` carry out a loop; `launch(loops)`, if given, carries
    out a batch instead. If `keeps_events` is true, `events` has all events, else the first. `sums`
    is the checksums of a transfer that only reads, `ends` each batch's last event."""

    unit: OpenCLDevice
    queue: cl.CommandQueue
    commands: list[Enqueue] = []
    launch: Callable[..., cl.Event] | None = None
    keeps_events: bool = False
    sums: Words | None = None
    does: str = "a copy"
    events: list[cl.Event] = []
    ends: list[cl.Event] = []

    def commands_of(self, loops: int) -> int:
        return 1 if self.launch is not None else loops * len(self.commands)

    def arm(self, loops: int, batches: int, gate: cl.UserEvent) -> None:
        """Enqueues all batches. The first command waits for the gate (start signal)."""
        batch: list[Enqueue] = self.commands * loops
        if self.launch is not None:
            batch = [partial(self.launch, loops)]
        gates: list[cl.Event] | None = [gate]
        for number, enqueue in enumerate(batch * batches, 1):
            event = enqueue(wait_for=gates)
            gates = None
            if self.keeps_events or number == 1:
                self.events.append(event)
            if number % len(batch) == 0:
                self.ends.append(event)
        self.queue.flush()

    def times(self) -> tuple[int, ...]:
        with calling("clGetEventProfilingInfo"):
            for event in (self.events[0], *self.ends):
                status = event.command_execution_status
                if status < 0:
                    raise error_of(status, "clFinish", f"{self.does} ended with {{}}")
            return self.events[0].profile.start, *(event.profile.end for event in self.ends)


def copy_lane(unit: OpenCLDevice, copy: Copy, pieces: Pieces | None, makes: Pattern | None) -> Lane:
    """Returns the lane of a copy, in `pieces` if given. STREAM's kernels write pattern `makes`."""
    queue = unit.profiled_queue()
    if copy.transfer.both_ways or len(copy.transfer.memories) < 2:
        pieces = None
    ends = [own(end) for end in (copy.source, copy.destination) if end is not None]
    if copy.transfer.engine.kind == "sm":
        sums = partial_sums(unit) if copy.destination is None else None
        memories = [end.for_kernel() for end in ends]
        kernel = unit.kernel(*_kernel(copy, memories, pieces, makes, sums))
        grid = unit.grid_of(pieces) if pieces else unit.geometry
        launch = partial(cl.enqueue_nd_range_kernel, queue, kernel, *grid)
        return Lane(unit, queue, [launch], sums=sums)
    piece = copy.size if pieces is None else pieces.size
    commands = [
        _copy(queue, ends, copy.size, offset, min(piece, copy.size - offset))
        for offset in range(0, copy.size, piece)
    ]
    # pyopencl destroys the event of a copy with host memory only after the copy has ended, which
    # would hang at a closed gate.
    keeps_events = not all(end.memory.is_device for end in ends)
    return Lane(unit, queue, commands, keeps_events=keeps_events)


def _copy(
    queue: cl.CommandQueue, ends: list[OpenCLBuffer], size: int, offset: int, length: int
) -> Enqueue:
    options: dict[str, Any] = {}
    memories: list[Any] = []
    for name, end in zip(("src_offset", "dst_offset"), ends, strict=True):
        memory = end.for_copy(size)
        if end.memory.is_device:
            options[name] = offset
        else:
            memory = memoryview(memory)[offset : offset + length]
        memories.insert(0, memory)
    if len(options) == len(ends):
        options["byte_count"] = length
    else:
        options["is_blocking"] = False
    return partial(cl.enqueue_copy, queue, *memories, **options)


def _kernel(
    copy: Copy, ends: list[Any], pieces: Pieces | None, makes: Pattern | None, sums: Words | None
) -> tuple[Any, ...]:
    size = np.uint64(copy.size)
    if makes is not None:
        return "compute", *ends, size, np.int32(makes)
    if copy.source is None:
        return "pure_write", *ends, size, np.uint64(copy.seed)
    if sums is not None:
        return "pure_read", *ends, sums.buffer, size
    if pieces is not None:
        return "copy_pieces", *ends, size, np.uint64(pieces.size)
    return "exchange" if copy.transfer.both_ways else "copy", *ends, size


class OpenCLGroup(Gated):
    """Transfers that wait for one start signal: a user event in each context. Profiling events of
    the device time a transfer, from its first command's start to its last command's end."""

    policy = SamplingPolicy()
    _gates: Sequence[cl.UserEvent] = ()
    _began = 0.0

    def __init__(self, lanes: Sequence[Lane]) -> None:
        self.lanes = list(lanes)
        # Queues hold about a thousand commands, and some block when they are full.
        self.most_loops = max(1, _QUEUE // self._most_commands(1))
        facts = [lane.unit.facts for lane in self.lanes]
        # Devices that are part of the host use its clock. The clocks of other devices need not
        # agree: their span is measured by the host's clock.
        self._one_clock = len({of.device.memory for of in facts}) == 1 or (
            len({of.platform for of in facts}) == 1
            and all(of.device.shares_host_memory for of in facts)
        )

    def arm(self, loops: int, batches: int = 1) -> None:
        if batches * self._most_commands(loops) > _QUEUE:
            raise Unsupported(
                f"{loops * batches} loops do not fit behind OpenCL's gate: give --loops "
                f"{self.most_loops} or fewer, and no more than {_QUEUE // self.policy.loops} "
                "pieces a buffer"
            )
        super().arm(loops, batches)
        try:
            with calling("clCreateUserEvent"):
                # A user event belongs to one context, and lanes may use several.
                contexts = dict.fromkeys(lane.unit.domain for lane in self.lanes)
                gates = {domain: cl.UserEvent(domain.context) for domain in contexts}
                self._gates = list(gates.values())
            with calling("clEnqueueNDRangeKernel"):
                for lane in self.lanes:
                    lane.arm(loops, batches, gates[lane.unit.domain])
        except BaseException:
            self._let_go()
            raise

    def open(self) -> None:
        super().open()
        self._began = time.monotonic()
        with calling("clSetUserEventStatus"):
            for gate in self._gates:
                gate.set_status(cl.command_execution_status.COMPLETE)

    def wait(self) -> Timing:
        self.pass_gate()
        try:
            with calling("clFinish"):
                for lane in self.lanes:
                    lane.queue.finish()
            elapsed = time.monotonic() - self._began
            times = [lane.times() for lane in self.lanes]
        finally:
            self._let_go()
        span = (max(own[-1] for own in times) - min(own[0] for own in times)) * _NANO
        return Timing(
            seconds=tuple((own[-1] - own[0]) * _NANO for own in times),
            span=span if self._one_clock else elapsed,
            checksums=tuple(lane.sums.total() if lane.sums else None for lane in self.lanes),
            progress=tuple(
                tuple((at - origin) * _NANO for at in own)
                for own, origin in zip(times, self._origins(times), strict=True)
            ),
        )

    def _most_commands(self, loops: int) -> int:
        return max(lane.commands_of(loops) for lane in self.lanes)

    def _origins(self, times: Sequence[Sequence[int]]) -> list[int]:
        """Returns for each transfer the earliest start of all transfers that use its clock."""
        devices = [lane.unit.facts.device.memory for lane in self.lanes]
        clocks = ["" if self._one_clock else device for device in devices]
        starts = list(zip(clocks, (own[0] for own in times), strict=True))
        return [min(start for of, start in starts if of == clock) for clock in clocks]

    def close(self) -> None:
        """Opens the gate if it is closed, because waiting commands cannot be cancelled."""
        super().close()
        self._let_go()
        self.lanes = []

    def __del__(self) -> None:
        # Its events would wait for copies behind a gate that nothing can open any more.
        self._let_go()

    def _let_go(self) -> None:
        self._armed, self._opened = None, False
        for gate in self._gates:
            with suppress(cl.Error):  # it is already open
                gate.set_status(cl.command_execution_status.COMPLETE)
        for lane in self.lanes:
            with suppress(cl.Error):  # a lost device has already been reported
                if self._gates:
                    lane.queue.finish()
            lane.events, lane.ends = [], []
        self._gates = ()


class ComputeKernel:
    """A kernel that computes in registers alone. One launch does all loops."""

    def __init__(self, unit: OpenCLDevice) -> None:
        self.rounds = 1.0
        self.lane = Lane(unit, unit.profiled_queue(), launch=self._compute, does="a kernel")
        self._wrong = Words(unit)
        arguments = np.uint64(1), np.float32(FACTOR), np.float32(SUMMAND), self._wrong.buffer
        self._kernel = unit.kernel("multiply_add", *arguments, file="compute")

    def _compute(self, loops: int, wait_for: list[cl.Event] | None) -> cl.Event:
        self._kernel.set_arg(0, np.uint64(launched(self.rounds, loops)))
        queue, grid = self.lane.queue, self.lane.unit.geometry
        return cl.enqueue_nd_range_kernel(queue, self._kernel, *grid, wait_for=wait_for)

    def mismatch(self) -> str | None:
        device = self.lane.unit.facts.device.memory
        return f"{device} computed wrongly" if self._wrong.total() else None

"""OpenCL transfers that start together and are timed by the device. Also a kernel that computes
while copies run."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

import numpy as np
import pyopencl as cl

from linkgauge.backends.operations.overlap import FACTOR, SUMMAND, launched
from linkgauge.backends.protocol import Copy, Pace, Pattern, Timing
from linkgauge.model.errors import BackendError, Unsupported
from linkgauge.model.settings import Pieces

from .memory import OpenCLBuffer, Words, own, partial_sums
from .runtime import OpenCLDevice, calling, error_of

Enqueue = Callable[..., cl.Event]
"""A function that enqueues one command. Its argument `wait_for` is a list of events or None."""

_NANO = 1e-9
_QUEUE = 1000
"""The largest number of commands that wait for the gate. More might block."""


class Lane:
    """The commands of one transfer. They have a queue of their own and run in order.

    `commands` are those of each loop.
    `launch` is a command that does all loops of a lap at once; its first argument is their number.
    `keeps_events` says that events must be kept while the gate is closed.
    `sums` has the checksums of a transfer that only reads."""

    def __init__(
        self,
        unit: OpenCLDevice,
        queue: cl.CommandQueue,
        commands: list[Enqueue] | None = None,
        *,
        launch: Callable[..., cl.Event] | None = None,
        keeps_events: bool = False,
        sums: Words | None = None,
        does: str = "a copy",
    ) -> None:
        self.unit, self.queue, self.sums = unit, queue, sums
        self._commands, self._launch = commands or [], launch
        self._keeps_events, self._does = keeps_events, does
        self._events: list[cl.Event] = []
        self._ends: list[cl.Event] = []
        """The event of each lap's last command."""

    def commands_of(self, loops: int) -> int:
        """Returns the number of commands for this many loops."""
        return 1 if self._launch is not None else loops * len(self._commands)

    def arm(self, loops: int, laps: int, gate: cl.UserEvent) -> None:
        """Enqueues all laps. The first command waits for the gate (start signal)."""
        lap: list[Enqueue] = self._commands * loops
        if self._launch is not None:
            lap = [partial(self._launch, loops)]
        gates: list[cl.Event] | None = [gate]
        for number, enqueue in enumerate(lap * laps, 1):
            event = enqueue(wait_for=gates)
            gates = None
            if self._keeps_events or number == 1:
                self._events.append(event)
            if number % len(lap) == 0:
                self._ends.append(event)
        self.queue.flush()

    def times(self) -> tuple[int, ...]:
        """Returns the start of the first loop and the end of each lap, in nanoseconds of the
        device's clock. All commands must have ended. Raises BackendError if a command failed."""
        with calling("clGetEventProfilingInfo"):
            for event in (self._events[0], *self._ends):
                status = event.command_execution_status
                if status < 0:
                    raise error_of(status, "clFinish", f"{self._does} ended with {{}}")
            return self._events[0].profile.start, *(event.profile.end for event in self._ends)

    def clear(self) -> None:
        self._events.clear()
        self._ends.clear()


def copy_lane(unit: OpenCLDevice, copy: Copy, pieces: Pieces | None, makes: Pattern | None) -> Lane:
    """Returns the commands of a transfer: a copy, a read, a write, or an operation of STREAM. With
    `pieces`, a copy is cut into small parts. `makes` is the pattern that an operation on numbers
    writes."""
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
        _copy(queue, ends[0], ends[1], copy.size, offset, min(piece, copy.size - offset))
        for offset in range(0, copy.size, piece)
    ]
    # pyopencl destroys the event of a copy with host memory only after the copy has ended, which
    # would hang at a closed gate.
    keeps_events = not all(end.memory.is_device for end in ends)
    return Lane(unit, queue, commands, keeps_events=keeps_events)


def _copy(
    queue: cl.CommandQueue,
    source: OpenCLBuffer,
    destination: OpenCLBuffer,
    size: int,
    offset: int,
    length: int,
) -> Enqueue:
    """Returns a command that copies a part of two buffers: `length` bytes at `offset`. The buffers
    have `size` bytes."""
    options: dict[str, Any] = {}
    ends: list[Any] = []
    for name, end in (("dst_offset", destination), ("src_offset", source)):
        memory = end.for_copy(size)
        if end.memory.is_device:
            options[name] = offset
        else:
            memory = memoryview(memory)[offset : offset + length]
        ends.append(memory)
    if len(options) == len(ends):
        return partial(cl.enqueue_copy, queue, *ends, byte_count=length, **options)
    return partial(cl.enqueue_copy, queue, *ends, is_blocking=False, **options)


def _kernel(
    copy: Copy, ends: list[Any], pieces: Pieces | None, makes: Pattern | None, sums: Words | None
) -> tuple[Any, ...]:
    """Returns the name of the kernel that carries out a transfer, and its arguments."""
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


class OpenCLGroup:
    """Transfers that start together. The first command of each one waits for the same event.

    The seconds of a transfer are those from the start of its first command to the end of its last.
    They are measured by the device's profiling events."""

    pace = Pace()

    def __init__(self, lanes: Sequence[Lane]) -> None:
        self._gates: list[cl.UserEvent] = []
        self._opened: float | None = None
        self.lanes = list(lanes)
        devices = {lane.unit.facts.device.memory for lane in self.lanes}
        platforms = {lane.unit.facts.platform for lane in self.lanes}
        # Devices that are part of the host use its clock. The clocks of other devices need not
        # agree: their span is measured by the host's clock.
        self._one_clock = len(devices) == 1 or (
            len(platforms) == 1
            and all(lane.unit.facts.device.shares_host_memory for lane in self.lanes)
        )

    @property
    def most_loops(self) -> int:
        """Returns the largest number of loops that fit into the queues. Queues hold about a
        thousand commands, and some block when they are full."""
        return max(1, _QUEUE // self._most_commands(1))

    def arm(self, loops: int, laps: int = 1) -> None:
        if self._gates:
            raise BackendError("arm", "the group is armed already")
        if laps * self._most_commands(loops) > _QUEUE:
            raise Unsupported(
                f"{loops * laps} loops do not fit behind OpenCL's gate: give --loops "
                f"{self.most_loops} or fewer, and no more than {_QUEUE // self.pace.loops} pieces "
                "a buffer"
            )
        try:
            with calling("clCreateUserEvent"):
                # A user event belongs to one context, and lanes may use several.
                contexts = dict.fromkeys(lane.unit.domain for lane in self.lanes)
                gates = {domain: cl.UserEvent(domain.context) for domain in contexts}
                self._gates = list(gates.values())
            with calling("clEnqueueNDRangeKernel"):
                for lane in self.lanes:
                    lane.arm(loops, laps, gates[lane.unit.domain])
        except BaseException:
            self._let_go()
            raise

    def open(self) -> None:
        if not self._gates:
            raise BackendError("open", "the group is not armed")
        self._opened = time.monotonic()
        with calling("clSetUserEventStatus"):
            for gate in self._gates:
                gate.set_status(cl.command_execution_status.COMPLETE)

    def wait(self) -> Timing:
        opened = self._opened
        if opened is None:
            raise BackendError("wait", "the gate is not open")
        try:
            with calling("clFinish"):
                for lane in self.lanes:
                    lane.queue.finish()
            elapsed = time.monotonic() - opened
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
        """Returns the largest number of commands of any transfer in this group."""
        return max(lane.commands_of(loops) for lane in self.lanes)

    def _origins(self, times: Sequence[Sequence[int]]) -> list[int]:
        """Returns the approximate time of the start signal for each transfer. It is the earliest
        start of all transfers that are timed by the same clock."""
        devices = [lane.unit.facts.device.memory for lane in self.lanes]
        clocks = ["" if self._one_clock else device for device in devices]
        starts = list(zip(clocks, (own[0] for own in times), strict=True))
        return [min(start for of, start in starts if of == clock) for clock in clocks]

    def close(self) -> None:
        """Closes the group. May be called again. A closed gate is opened first, because waiting
        commands cannot be cancelled."""
        self._let_go()
        self.lanes = []

    def __del__(self) -> None:
        # Its events would wait for copies behind a gate that nothing can open any more.
        self._let_go()

    def _let_go(self) -> None:
        """Opens the gates and empties the queues, whatever their state."""
        for gate in self._gates:
            with suppress(cl.Error):  # it is already open
                gate.set_status(cl.command_execution_status.COMPLETE)
        for lane in self.lanes if self._gates else ():
            with suppress(cl.Error):  # a lost device has already been reported
                lane.queue.finish()
        for lane in self.lanes:
            lane.clear()
        self._gates = []
        self._opened = None


# A kernel that computes in registers alone, beside which copies run.


class ComputeKernel:
    """A kernel that computes. One launch does the work of all loops."""

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
        """Returns a message if the kernel computed a wrong result, else None."""
        device = self.lane.unit.facts.device.memory
        return f"{device} computed wrongly" if self._wrong.total() else None

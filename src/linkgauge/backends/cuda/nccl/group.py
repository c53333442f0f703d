"""Repeats and times a collective of NCCL, and checks its result."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, suppress
from typing import Any

from linkgauge import _native
from linkgauge.backends.cuda.device import CudaDevice, KernelLaunch, new_word, read_word, run
from linkgauge.backends.operations.collectives import POISON, CollectiveGroup
from linkgauge.backends.protocol import Timing, Wrong
from linkgauge.model.errors import BackendError, Unsupported
from linkgauge.model.operations.collective import Collective
from linkgauge.model.operations.contents import ElementOrigin, content_fields

from .calls import GROUP_END, GROUP_START, CollectivePart, LibraryCall, driver_call, iteration
from .library import Nccl

# The numbers that collectives move, written and checked on a device (kernels/content.cu).

_THREADS, _BLOCKS = 512, 8
"""The threads of a block, and the blocks of a multiprocessor."""


class _Content(ctypes.Structure):
    """Mirrors the struct `Content` of content.cuh, which describes the data of a collective."""

    _fields_ = (
        *((name, ctypes.c_uint64) for name in ("seed", "ranks", "share", "largest")),
        ("reduction", ctypes.c_int),
        ("tolerance", ctypes.c_double),
    )


class _Origin(ctypes.Structure):
    _fields_ = tuple((name, ctypes.c_uint64) for name in ("first", "chunk", "base"))


class RankData:
    def __init__(self, work: Collective, ranks: int, seed: int) -> None:
        self._type = work.number.code
        self._of = _Content(*content_fields(work, ranks, seed))

    def fill(self, device: CudaDevice, address: int, count: int, rank: int) -> None:
        run(device, self._launch(device, "fill", count, (address, count, self._of, rank)))

    def wrong(
        self, device: CudaDevice, address: int, count: int, origin: ElementOrigin
    ) -> tuple[int, int]:
        """Returns how many elements do not come from `origin`, and the first one's index, or 0."""
        place = _Origin(origin.first, origin.chunk, origin.base)
        with ExitStack() as made:
            words = [new_word(device, made, byte) for byte in (0, 0xFF)]
            arguments = (address, count, self._of, place, *words)
            run(device, self._launch(device, "count_wrong", count, arguments))
            number, first = (read_word(device, word) for word in words)
        return number, first if number else 0

    def _launch(
        self, device: CudaDevice, kernel: str, count: int, arguments: tuple[Any, ...]
    ) -> KernelLaunch:
        blocks = max(1, min(-(-count // _THREADS), device.multiprocessors * _BLOCKS))
        grid = blocks, _THREADS
        return KernelLaunch(device, f"content.{kernel}", grid, arguments, {"TYPE": self._type})


_NANO, _MILLI = 1e-9, 1e-3
_GRAPHED = 512
"""The largest number of iterations in one graph."""


class NcclGroup(CollectiveGroup):
    def __init__(
        self, nccl: Nccl, parts: Sequence[CollectivePart], work: Collective, count: int
    ) -> None:
        super().__init__(work)
        self._nccl = nccl
        self._parts = parts
        self._count = count
        self._made = ExitStack()
        self._graphs: list[Any] = []
        if work.graphed:
            self.most_loops = _GRAPHED
        try:
            self._calls = iteration(nccl, parts, self._reductions())
            self._register()
        except BaseException:
            self._made.close()
            raise
        self._ends = [
            driver_call("cuStreamSynchronize", int(part.device.stream(0))) for part in parts
        ]

    def _reductions(self) -> list[int]:
        reduction, number, made = self._work.reduction, self._work.number, self._made
        if reduction is None:
            return [0] * len(self._parts)
        return [
            self._nccl.reduction(part.communicator, reduction, number, part.rank, made)
            for part in self._parts
        ]

    def _register(self) -> None:
        if self._work.registered is None:
            return
        symmetric = self._work.registered == "symmetric"
        needed = self._work.buffer_bytes(self._parts[0].size, self._count)
        handles = []
        with self._nccl.grouped():
            for part in self._parts:
                sent, received = needed[part.place]
                for address, size in ((part.send, sent), (part.receive, received)):
                    if size:
                        own = part.communicator
                        handle = self._nccl.register(own, address, size, symmetric=symmetric)
                        handles.append((own, handle))
        for own, handle in handles:
            self._made.callback(self._nccl.unregister, own, handle, symmetric=symmetric)

    def arm(self, loops: int, batches: int = 1) -> None:
        super().arm(loops, batches)
        self._drop_graphs()
        if self._work.graphed:
            self._capture(loops * batches)

    def _capture(self, loops: int) -> None:
        begun: list[CollectivePart] = []
        try:
            for part in self._parts:
                modes = part.device.driver.enums.CUstreamCaptureMode
                local = modes.CU_STREAM_CAPTURE_MODE_THREAD_LOCAL
                part.device.call("cuStreamBeginCapture", part.device.stream(0), local)
                begun.append(part)
            self._make(self._calls, loops)
        finally:  # else whoever uses the streams next is captured
            graphs = [
                part.device.call("cuStreamEndCapture", part.device.stream(0)) for part in begun
            ]
        for part, graph in zip(begun, graphs, strict=True):
            self._graphs.append((part, part.device.call("cuGraphInstantiate", graph, 0)))
            part.device.call("cuGraphDestroy", graph)

    def _drop_graphs(self) -> None:
        for part, graph in self._graphs:
            part.device.call("cuGraphExecDestroy", graph)
        self._graphs.clear()

    def wait(self) -> Timing:
        loops, batches = self.pass_gate()
        if self._work.graphed:
            launches = [
                driver_call("cuGraphLaunch", int(graph), int(part.device.stream(0)))
                for part, graph in self._graphs
            ]
            seconds = self._make(launches, 1, self._ends)
        else:
            # Right before, as in nccl-tests: after a pause the first calls take longer.
            self.carry_out(1)
            if self._work.blocking:
                seconds = self._make([*self._calls, *self._ends], loops * batches)
            else:
                seconds = self._make(self._calls, loops * batches, self._ends)
        for part in self._parts:
            self._nccl.check(part.communicator)
        whole, here = (0.0, seconds), {part.place for part in self._parts}
        progress = tuple(whole if place in here else () for place in range(self._count))
        return Timing((seconds,) * self._count, seconds, (None,) * self._count, progress)

    def _make(
        self, calls: Sequence[LibraryCall], times: int, last: Sequence[LibraryCall] = ()
    ) -> float:
        self._parts[0].device.enter()
        each = [(call.address, call.words) for call in calls]
        at_last = [(call.address, call.words) for call in last]
        ends, status, failed = _native.time_iterations(each, times, at_last)
        if status:
            made = [call.name for call in (*calls, *last)][: failed + 1]
            error = self._error(made[-1], status)
            self._nccl.end_groups(made[:-1].count(GROUP_START) - made.count(GROUP_END))
            raise error
        return ends[-1] * _NANO

    def _error(self, name: str, status: int) -> BackendError | Unsupported:
        if name.startswith("nccl"):
            return self._nccl.error(name, status)
        driver = self._parts[0].device.driver
        return driver.error(name, driver.enums.CUresult(status))

    def iterations(self, count: int) -> tuple[tuple[float, ...], ...]:
        """Returns the seconds of each iteration for each rank, by events on the rank's device."""
        with ExitStack() as made:
            marks = [self._events(part, 2 * count, made) for part in self._parts]
            calls: list[LibraryCall] = []
            for number in range(count):
                calls += self._recorded(marks, 2 * number)
                calls += self._calls
                calls += self._recorded(marks, 2 * number + 1)
            self._make(calls, 1, self._ends)
            found: list[tuple[float, ...]] = [()] * self._count
            for part, own in zip(self._parts, marks, strict=True):
                elapsed, each = part.device.driver.call, _MILLI / self._work.aggregated
                found[part.place] = tuple(
                    elapsed("cuEventElapsedTime", *own[at : at + 2]) * each
                    for at in range(0, 2 * count, 2)
                )
        return tuple(found)

    def _events(self, part: CollectivePart, count: int, made: ExitStack) -> list[Any]:
        flags = part.device.driver.enums.CUevent_flags.CU_EVENT_DEFAULT
        events = []
        for _ in range(count):
            event = part.device.call("cuEventCreate", flags)
            made.callback(part.device.driver.call, "cuEventDestroy", event)
            events.append(event)
        return events

    def _recorded(self, marks: Sequence[Sequence[Any]], at: int) -> Iterator[LibraryCall]:
        for part, events in zip(self._parts, marks, strict=True):
            yield driver_call("cuEventRecord", int(events[at]), int(part.device.stream(0)))

    def fill(self) -> None:
        for part in self._parts:
            device = part.device
            _, size = self._work.buffer_bytes(part.size, self._count)[part.place]
            device.call("cuMemsetD8Async", part.receive, POISON, size, device.aside)
            of = RankData(self._work, part.ranks, self._seed)
            of.fill(device, part.sends_from, part.counts.send, part.rank)

    def carry_out(self, loops: int) -> None:
        self._make(self._calls, loops, self._ends)

    def found(self) -> Iterator[Wrong]:
        for part in self._parts:
            if (origin := part.share.origin) is not None:
                of = RankData(self._work, part.ranks, self._seed)
                count, first = of.wrong(part.device, part.receives_at, part.counts.receive, origin)
                yield Wrong(count, part.place, first)

    def close(self) -> None:
        super().close()
        with suppress(BackendError):  # a lost device has already been reported
            self._drop_graphs()
            self._made.close()

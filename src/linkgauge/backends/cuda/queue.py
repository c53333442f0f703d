"""How calls of the CUDA driver are timed on the host, such as calls that enqueue copies."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from functools import cache
from typing import Any

from linkgauge import _native
from linkgauge.backends import iterations
from linkgauge.backends.cuda import flags
from linkgauge.backends.iterations import Named, Queue
from linkgauge.backends.protocol import Buffer, Copy, Gated, SamplingPolicy, Timing
from linkgauge.model.errors import BackendError, TookTooLong, Unsupported

from .device import CudaDevice, KernelLaunch, pinned_words
from .driver import LIBRARY
from .gate import DEADLINE_SECONDS, GATE_SECONDS, StartGate
from .group import QUEUE
from .launches import copy_launch
from .memory import address_in, span_of
from .settings import CopySettings

_AWAIT = "doorbell"
"""The name of a function of the native core. It is called in the same way as the driver's
functions."""


@cache
def address_of(function: str) -> int:
    return iterations.address_of(ctypes.CDLL(LIBRARY), function)


class CudaQueue(Queue):
    def __init__(self, device: CudaDevice, made: ExitStack) -> None:
        self._device, self._made = device, made
        self._stream = device.stream(0)

    def address_of(self, name: str) -> int:
        return _native.AWAIT_WORD if name == _AWAIT else address_of(name)

    def error_of(self, name: str, status: int) -> BackendError:
        driver = self._device.driver
        if name == _AWAIT:
            late = f"no store by cuda:{self._device.index} within {flags.LIMIT:g} s"
            return TookTooLong(name, late)
        return driver.error(name, driver.enums.CUresult(status))

    def enter(self) -> None:
        self._device.enter()

    def copy(self, destination: Buffer | None, source: Buffer | None, size: int) -> Iterator[Named]:
        ends = address_in(destination), address_in(source)
        yield "cuMemcpyAsync", (*ends, size, int(self._stream))

    def sync(self) -> Iterator[Named]:
        yield "cuStreamSynchronize", (int(self._stream),)

    def launch(self) -> Iterator[Named]:
        yield "cuLaunchKernel", self._loaded("nothing").words(self._stream)
        yield from self.sync()

    def event(self) -> Iterator[Named]:
        untimed = self._device.driver.enums.CUevent_flags.CU_EVENT_DISABLE_TIMING
        event = self._device.call("cuEventCreate", untimed)
        self._made.callback(self._release, "cuEventDestroy", event)
        yield "cuEventRecord", (int(event), int(self._stream))
        yield "cuEventSynchronize", (int(event),)

    def graph_launch(self) -> Iterator[Named]:
        call, stream = self._device.driver.call, self._stream
        launch = self._loaded("nothing")
        modes = self._device.driver.enums.CUstreamCaptureMode
        call("cuStreamBeginCapture", stream, modes.CU_STREAM_CAPTURE_MODE_RELAXED)
        try:
            launch.enqueue(stream)
        finally:  # else whoever uses the stream next is captured
            graph = call("cuStreamEndCapture", stream)
        self._made.callback(self._release, "cuGraphDestroy", graph)
        ready = call("cuGraphInstantiate", graph, 0)
        self._made.callback(self._release, "cuGraphExecDestroy", ready)
        yield "cuGraphLaunch", (int(ready), int(stream))
        yield from self.sync()

    def doorbell(self) -> Iterator[Named]:
        words = pinned_words(self._device, ctypes.c_uint64, 1)
        word = ctypes.addressof(words)
        self._made.callback(self._release, "cuMemFreeHost", word)
        launch = self._loaded("answer", word, None)
        words[0] = 0
        yield "cuLaunchKernel", launch.words(self._stream)
        # The number that is waited for is the next launch's argument.
        yield _AWAIT, (word, ctypes.addressof(launch.varying), int(flags.LIMIT * 1e9))

    def _loaded(self, kernel: str, *arguments: int | None) -> KernelLaunch:
        # A kernel must be loaded before a CUDA graph is captured, so it runs once.
        device = self._device
        launch = KernelLaunch(device, f"flags.{kernel}", (1, 1), arguments)
        self._made.callback(lambda: launch)
        device.enter()
        launch.enqueue(self._stream)
        device.call("cuStreamSynchronize", self._stream)
        return launch

    def _release(self, call: str, what: Any) -> None:
        with suppress(BackendError):  # a lost device has already been reported
            self._device.call("cuStreamSynchronize", self._stream)
            self._device.driver.call(call, what)


# Times the driver calls that enqueue copies, while a gate holds the device.
#
# p2pBandwidthLatencyTest of the CUDA samples calls this CPU latency. The native core makes the
# calls one after another, with no Python between them.

_NANO = 1e-9
_GATE = 1
"""The number of queue entries that the gate takes."""


class EnqueuingGroup(Gated):
    """Times the driver's call `named`. If `may_block`, the call may wait for the device."""

    most_loops = QUEUE - _GATE
    policy = SamplingPolicy(loops=1)

    def __init__(
        self, device: CudaDevice, named: Named, made: ExitStack, *, may_block: bool = False
    ) -> None:
        self._device, self._made = device, made
        self._queue = CudaQueue(device, made)
        self._name, words = named
        self._call = self._queue.address_of(self._name), words
        self._stream = device.stream(0)
        self._may_block = may_block or device.calls_wait
        self._gate = StartGate([device], DEADLINE_SECONDS if self._may_block else GATE_SECONDS)
        self._seconds = 0.0

    def arm(self, loops: int, batches: int = 1) -> None:
        """Makes the device wait at a gate (start signal). Raises Unsupported if its queue cannot
        hold all calls."""
        if loops * batches > self.most_loops:
            many, most = loops * batches, self.most_loops
            raise Unsupported(f"{many} calls do not fit behind a gate: give --loops {most}")
        super().arm(loops, batches)
        self._gate.shut()
        self._device.enter()
        self._gate.enqueue(self._device, self._stream)

    def open(self) -> None:
        """Makes and times the calls while the gate (start signal) is closed, then opens it."""
        super().open()
        loops, batches = self._armed or (1, 1)
        self._device.enter()
        ends, status, _ = _native.time_iterations([self._call], loops * batches)
        self._seconds = ends[-1] * _NANO
        self._gate.open()
        if status:
            raise self._queue.error_of(self._name, status)

    def wait(self) -> Timing:
        self.pass_gate()
        self._device.call("cuStreamSynchronize", self._stream)
        if self._gate.gave_up and not self._may_block:
            raise BackendError("gate", "the gate opened before all calls were made")
        return Timing.of_one((0.0, self._seconds))

    def close(self) -> None:
        if self._closed:
            return
        super().close()
        self._gate.open()
        with suppress(BackendError):  # a lost device has already been reported
            self._device.call("cuStreamSynchronize", self._stream)
        self._made.close()


def by_the_driver(device: CudaDevice, ends: tuple[Any, ...]) -> EnqueuingGroup:
    """Returns a group that times cuMemcpyPeerAsync(`ends`, stream), as the host sees it."""
    words = *map(int, ends), int(device.stream(0))
    return EnqueuingGroup(device, ("cuMemcpyPeerAsync", words), ExitStack(), may_block=True)


def enqueued(device: CudaDevice, copy: Copy, settings: CopySettings) -> EnqueuingGroup:
    transfer, stream, made = copy.transfer, int(device.stream(0)), ExitStack()
    span = span_of(copy)
    if transfer.engine.kind == "ce":
        return EnqueuingGroup(device, ("cuMemcpyAsync", (*span, stream)), made)
    kernel = copy_launch(device, span, settings, transfer.both_ways)
    made.callback(lambda: kernel)
    return EnqueuingGroup(device, ("cuLaunchKernel", kernel.words(stream)), made)

"""A stream of a device as calls of the driver, for what the host times call by call."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from functools import cache
from typing import Any

from linkgauge import _native
from linkgauge.backends import iterations
from linkgauge.backends.iterations import Named, Queue
from linkgauge.backends.protocol import Buffer
from linkgauge.model.errors import BackendError, TookTooLong

from . import flags
from .device import CudaDevice, Launch
from .driver import LIBRARY
from .memory import address_in, pinned_words

_AWAIT = "doorbell"
"""What is called as the driver's functions are, but is the native core's."""


@cache
def address_of(function: str) -> int:
    """Address of a driver function."""
    return iterations.address_of(ctypes.CDLL(LIBRARY), function)


class CudaQueue(Queue):
    """The first stream of a device. `made` closes what calls need."""

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

    def _loaded(self, kernel: str, *arguments: int | None) -> Launch:
        """A launch of a kernel that is loaded, as it is when it first runs: a capture does not
        allow that. Its arguments are there until all is closed."""
        device = self._device
        launch = Launch(device, device.kernel("flags", kernel), (1, 1), arguments)
        self._made.callback(lambda: launch)
        device.enter()
        launch.enqueue(self._stream)
        device.call("cuStreamSynchronize", self._stream)
        return launch

    def _release(self, call: str, what: Any) -> None:
        """Once the stream is done with it."""
        with suppress(BackendError):  # a lost device has already been reported
            self._device.call("cuStreamSynchronize", self._stream)
            self._device.driver.call(call, what)

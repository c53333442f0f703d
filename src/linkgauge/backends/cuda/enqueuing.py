"""Times the driver calls that enqueue copies, while a gate holds the device.

p2pBandwidthLatencyTest of the CUDA samples calls this CPU latency. The native core makes the calls
one after another, with no Python between them.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cache
from typing import Any

import msgspec

from linkgauge import _native
from linkgauge.backends import iterations
from linkgauge.backends.protocol import Pace, Timing
from linkgauge.model.errors import BackendError, Unsupported

from .device import CudaDevice
from .driver import LIBRARY
from .gate import GATE_SECONDS, PATIENCE, StartGate
from .group import QUEUE

_NANO = 1e-9
_GATE = 1
"""The gate itself is one of the operations in the queue."""


class Call(msgspec.Struct, frozen=True):
    """A driver function that enqueues one copy on a stream, and its arguments for that stream."""

    function: str
    words: Callable[[Any], Sequence[int]]
    may_block: bool = False
    """Whether it may wait for the device."""


def copy_call(function: str, before: Sequence[Any], *, may_block: bool = False) -> Call:
    """A call of one of the driver's copies, whose last argument is the stream."""
    return Call(function, lambda stream: tuple(map(int, (*before, stream))), may_block)


@cache
def address_of(function: str) -> int:
    """Address of a driver function."""
    return iterations.address_of(ctypes.CDLL(LIBRARY), function)


class EnqueuingGroup:
    """One copy. Its seconds are host time, from before the first call until after the last."""

    most_loops = QUEUE - _GATE
    pace = Pace(loops=1)

    def __init__(self, device: CudaDevice, call: Call) -> None:
        self._device = device
        self._call = call
        self._function = address_of(call.function)
        self._stream = device.stream(0)
        self._may_block = call.may_block or device.calls_wait
        self._gate = StartGate([device], PATIENCE if self._may_block else GATE_SECONDS)
        self._loops = 0
        self._seconds: float | None = None
        self._closed = False

    def arm(self, loops: int, laps: int = 1) -> None:
        """Raises Unsupported if a call might wait for the device, which waits for the gate."""
        loops *= laps
        if self._closed or self._loops:
            raise BackendError("arm", "the group is closed" if self._closed else "armed already")
        if loops > self.most_loops:
            most = self.most_loops
            raise Unsupported(f"{loops} calls do not fit behind a gate: give --loops {most}")
        self._gate.shut()
        self._device.enter()
        self._gate.enqueue(self._device, self._stream)
        self._loops = loops

    def open(self) -> None:
        """Makes the calls, then releases the device."""
        if not self._loops:
            raise BackendError("open", "the group is not armed")
        self._device.enter()
        call = self._function, self._call.words(self._stream)
        ends, status, _ = _native.time_iterations([call], self._loops)
        self._seconds = ends[-1] * _NANO
        self._gate.open()
        if status:
            driver = self._device.driver
            raise driver.error(self._call.function, driver.enums.CUresult(status))

    def wait(self) -> Timing:
        if self._seconds is None:
            raise BackendError("wait", "the gate is not open")
        seconds, self._seconds, self._loops = self._seconds, None, 0
        self._device.call("cuStreamSynchronize", self._stream)
        if self._gate.gave_up and not self._may_block:
            raise BackendError("gate", "the gate opened before all calls were made")
        return Timing((seconds,), seconds, (None,), ((0.0, seconds),))

    def close(self) -> None:
        """Opens the gate if it is shut, and waits for what is enqueued; idempotent."""
        if self._closed:
            return
        self._closed = True
        self._gate.open()
        with suppress(BackendError):  # a lost device has already been reported
            self._device.call("cuStreamSynchronize", self._stream)
            self._gate.free()

"""Times the driver calls that enqueue copies, while a gate holds the device.

p2pBandwidthLatencyTest of the CUDA samples calls this CPU latency. The native core makes the calls
one after another, with no Python between them.
"""

from __future__ import annotations

from contextlib import ExitStack, suppress

from linkgauge import _native
from linkgauge.backends.iterations import Named
from linkgauge.backends.protocol import Gated, Pace, Timing
from linkgauge.model.errors import BackendError, Unsupported

from .device import CudaDevice
from .gate import GATE_SECONDS, PATIENCE, StartGate
from .group import QUEUE
from .queue import CudaQueue

_NANO = 1e-9
_GATE = 1
"""The gate itself is one of the operations in the queue."""


class EnqueuingGroup(Gated):
    """One copy, which is `named` on the first queue of a device. Its seconds are host time, from
    before the first call until after the last. A call `may_block`: it may wait for the device.
    `made` has what the calls need."""

    most_loops = QUEUE - _GATE
    pace = Pace(loops=1)

    def __init__(
        self, device: CudaDevice, named: Named, made: ExitStack, *, may_block: bool = False
    ) -> None:
        self._device, self._made = device, made
        self._queue = CudaQueue(device, made)
        self._name, words = named
        self._call = self._queue.address_of(self._name), words
        self._stream = device.stream(0)
        self._may_block = may_block or device.calls_wait
        self._gate = StartGate([device], PATIENCE if self._may_block else GATE_SECONDS)
        self._seconds = 0.0
        self._closed = False

    def arm(self, loops: int, laps: int = 1) -> None:
        """Raises Unsupported if a call might wait for the device, which waits for the gate."""
        if self._closed:
            raise BackendError("arm", "the group is closed")
        if loops * laps > self.most_loops:
            many, most = loops * laps, self.most_loops
            raise Unsupported(f"{many} calls do not fit behind a gate: give --loops {most}")
        super().arm(loops, laps)
        self._gate.shut()
        self._device.enter()
        self._gate.enqueue(self._device, self._stream)

    def open(self) -> None:
        """Makes the calls, then releases the device."""
        super().open()
        loops, laps = self._armed or (1, 1)
        self._device.enter()
        ends, status, _ = _native.time_iterations([self._call], loops * laps)
        self._seconds = ends[-1] * _NANO
        self._gate.open()
        if status:
            raise self._queue.error_of(self._name, status)

    def wait(self) -> Timing:
        self.pass_gate()
        self._device.call("cuStreamSynchronize", self._stream)
        if self._gate.gave_up and not self._may_block:
            raise BackendError("gate", "the gate opened before all calls were made")
        seconds = self._seconds
        return Timing((seconds,), seconds, (None,), ((0.0, seconds),))

    def close(self) -> None:
        """Opens the gate if it is shut, and waits for what is enqueued; idempotent."""
        if self._closed:
            return
        super().close()
        self._closed = True
        self._gate.open()
        with suppress(BackendError):  # a lost device has already been reported
            self._device.call("cuStreamSynchronize", self._stream)
            self._gate.free()
        self._made.close()

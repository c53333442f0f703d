"""Where a kernel records its progress: one launch carries out all loops, so events cannot separate
them."""

from __future__ import annotations

from ctypes import c_uint64
from typing import Any

from linkgauge.backends.protocol import MOST_LAPS

from .device import CudaDevice

_WORD = 8
_BEFORE = 2
"""Words before the marks: when the gate opened, and the number of steps done (progress.cuh)."""
_SIZE = (_BEFORE + MOST_LAPS + 1) * _WORD
_NANO = 1e-9


class Marks:
    """Words in a device's memory. The gate records its opening at `opened`. The kernel counts its
    steps at `steps`, followed by its start and the end of each of its `laps`. Times are
    nanoseconds of the device's clock."""

    def __init__(self, device: CudaDevice) -> None:
        self._device = device
        self.opened = int(device.call("cuMemAlloc", _SIZE))
        self.steps = self.opened + _WORD
        self.laps = c_uint64(1)

    def reset(self, stream: Any) -> None:
        """Clears all words, in the order of the stream."""
        self._device.driver.call("cuMemsetD8Async", self.opened, 0, _SIZE, stream)

    def read(self) -> tuple[float, ...]:
        """Start, and end of each lap, in seconds since the gate opened, once the kernel is done."""
        found = bytearray(_SIZE)
        self._device.call("cuMemcpyDtoH", found, self.opened, _SIZE)
        opened, _, *times = memoryview(found).cast("Q")
        return tuple((at - opened) * _NANO for at in times[: self.laps.value + 1])

    def free(self) -> None:
        self._device.call("cuMemFree", self.opened)

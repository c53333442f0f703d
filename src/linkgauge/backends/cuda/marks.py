"""Where a kernel records how far it is: one launch carries out all loops, and no event stands
between them."""

from __future__ import annotations

from ctypes import c_uint64
from typing import Any

from linkgauge.backends.protocol import MOST_LAPS

from .device import CudaDevice

_WORD = 8
_BEFORE = 2
"""Words before the marks: when the gate opened, and how many steps are done (progress.cuh)."""
_SIZE = (_BEFORE + MOST_LAPS + 1) * _WORD
_NANO = 1e-9


class Marks:
    """Words in a device's memory: `opened` is where the gate notes its opening, `steps` where the
    kernel counts its steps and, behind that, when it began and when it had carried out each of its
    `laps`; times are nanoseconds of the device's clock."""

    def __init__(self, device: CudaDevice) -> None:
        self._device = device
        self.opened = int(device.call("cuMemAlloc", _SIZE))
        self.steps = self.opened + _WORD
        self.laps = c_uint64(1)

    def reset(self, stream: Any) -> None:
        """Before what is enqueued on this stream from now on."""
        self._device.driver.call("cuMemsetD8Async", self.opened, 0, _SIZE, stream)

    def read(self) -> tuple[float, ...]:
        """Seconds since the gate opened, of the begin and of each lap's end. The kernel is done."""
        found = bytearray(_SIZE)
        self._device.call("cuMemcpyDtoH", found, self.opened, _SIZE)
        opened, _, *times = memoryview(found).cast("Q")
        return tuple((at - opened) * _NANO for at in times[: self.laps.value + 1])

    def free(self) -> None:
        self._device.call("cuMemFree", self.opened)

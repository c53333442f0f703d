"""A gate (start signal) that holds devices back until all their work is enqueued."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

from .device import CudaDevice
from .launches import gate_launch
from .memory import pinned_words

GATE_SECONDS = 10.0
"""Seconds after which a gate opens by itself. Only the sample is then lost, not the device."""
PATIENCE = 0.005
"""Seconds after which a gate opens by itself if calls may wait for the device. The sample then
still counts. The delay is that of p2pBandwidthLatencyTest (10^7 clocks)."""


class StartGate:
    """A gate for some devices. It is a flag in pinned host memory, and a kernel on each device that
    polls the flag for at most `seconds`."""

    def __init__(self, devices: Sequence[CudaDevice], seconds: float = GATE_SECONDS) -> None:
        self._home = devices[0]
        self._state = pinned_words(self._home, ctypes.c_uint32, 2)
        self._address: int | None = ctypes.addressof(self._state)
        limit = int(seconds * 1e9)
        try:
            self._launches = {
                device.index: gate_launch(device, self._address, limit) for device in devices
            }
        except BaseException:
            self.free()
            raise

    def enqueue(self, device: CudaDevice, stream: Any, opened: int = 0) -> None:
        """Enqueues the kernel that waits at the gate. If `opened` is not 0, it is the address where
        the kernel writes the time at which it saw the gate open."""
        launch = self._launches[device.index]
        launch.varying.value = opened
        launch.enqueue(stream)

    def shut(self) -> None:
        self._state[0] = self._state[1] = 0

    def open(self) -> None:
        self._state[0] = 1

    @property
    def gave_up(self) -> bool:
        return bool(self._state[1])

    def free(self) -> None:
        address, self._address = self._address, None
        if address is not None:
            self._home.call("cuMemFreeHost", address)

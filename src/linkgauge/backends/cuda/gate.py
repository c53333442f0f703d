"""A gate (start signal): a kernel that holds a device back until all its work is enqueued."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

from .device import CudaDevice, KernelLaunch

GATE_SECONDS = 10.0
"""Seconds after which a gate opens by itself. Only the sample is then lost, not the device."""
DEADLINE_SECONDS = 0.005
"""Seconds after which a gate opens by itself if calls may wait for the device. The sample then
still counts. The delay is that of p2pBandwidthLatencyTest (10^7 clocks)."""


class StartGate:
    def __init__(self, devices: Sequence[CudaDevice], seconds: float = GATE_SECONDS) -> None:
        self._state = devices[0].gate
        address, limit = ctypes.addressof(self._state), int(seconds * 1e9)
        # The varying argument is where the kernel writes the time, or 0.
        self._launches = {
            device.index: KernelLaunch(device, "gate.gate", (1, 1), (address, limit, None))
            for device in devices
        }

    def enqueue(self, device: CudaDevice, stream: Any, opened: int = 0) -> None:
        """Enqueues a kernel that awaits the gate, then stores the time at `opened` (0: nowhere)."""
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

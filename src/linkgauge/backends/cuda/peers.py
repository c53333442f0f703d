"""Access of devices to each other's memory."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import permutations

from linkgauge.model.errors import BackendError

from .device import CudaDevice
from .driver import Driver


class Peers:
    """The pairs of devices between which this process has enabled access."""

    def __init__(self, driver: Driver) -> None:
        self._driver = driver
        self._enabled: set[tuple[int, int]] = set()

    def connect(self, devices: Iterable[CudaDevice]) -> None:
        """Enables access between these devices, both ways; once."""
        for one, other in permutations({id(device): device for device in devices}.values(), 2):
            if (one.index, other.index) not in self._enabled:
                self._enable(one, other)
                self._enabled.add((one.index, other.index))

    def _enable(self, device: CudaDevice, peer: CudaDevice) -> None:
        if not self._driver.call("cuDeviceCanAccessPeer", device.handle, peer.handle):
            return  # refusal() has already rejected transfers that need it
        device.enter()
        about = f"of cuda:{peer.index} to cuda:{device.index}"
        try:
            self._driver.call("cuCtxEnablePeerAccess", peer.context, 0, about=about)
        except BackendError as error:
            # The primary context is shared: another library of this process may have been first.
            if "PEER_ACCESS_ALREADY_ENABLED" not in error.detail:
                raise

    def clear(self) -> None:
        self._enabled.clear()

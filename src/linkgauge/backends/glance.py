"""The interface of what is known of a backend's devices while the backend is closed."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from linkgauge.model.hardware.inventory import Accelerator
from linkgauge.model.hardware.machine import Device


@runtime_checkable
class Glance(Protocol):
    """Facts about the devices of a backend. Every backend with telemetry has these methods, too."""

    def devices(self) -> tuple[Device, ...]:
        """Returns the backend's accelerators, by device index."""
        ...

    def inventory(self) -> tuple[Accelerator, ...]:
        """Returns all known facts about each device, in the order of the devices."""
        ...

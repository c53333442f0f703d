"""What devices report while nothing is measured. Rates are in bytes/s one way, clocks in Hz."""

from __future__ import annotations

import msgspec

from .inventory import Accelerator, PciFunction
from .network import NetworkCounters


class LinkTraffic(msgspec.Struct, frozen=True):
    index: int
    kind: str
    sent: int | None = None
    received: int | None = None


class LiveDevice(msgspec.Struct, frozen=True, kw_only=True):
    """The state of a device. `number` is its index in nvidia-smi, and `up` whether it answers."""

    number: int
    accelerator: Accelerator
    up: bool = True
    clock_memory: float | None = None
    pcie_sent: float | None = None
    pcie_received: float | None = None
    ecc_corrected: int | None = None
    traffic: tuple[LinkTraffic, ...] = ()


class InventoryReading(msgspec.Struct, frozen=True):
    functions: tuple[PciFunction, ...] = ()
    devices: tuple[LiveDevice, ...] = ()
    counters: tuple[NetworkCounters, ...] = ()

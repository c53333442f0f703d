"""What a machine's devices report at one moment, beside no measurement: states and counters.

Rates are bytes/s of one direction, clocks Hz. Null is what a library does not report.
"""

from __future__ import annotations

import msgspec

from .inventory import Accelerator, PciFunction


class LinkTraffic(msgspec.Struct, frozen=True):
    """What a link of an accelerator's fabric has carried since its driver was loaded: payload bytes
    `sent` and `received`."""

    index: int
    kind: str
    sent: int | None = None
    received: int | None = None


class LiveDevice(msgspec.Struct, frozen=True, kw_only=True):
    """An accelerator now. `number` is its place in its library's list, as `nvidia-smi` counts them;
    `up` is whether the library reaches it. `pcie_sent` and `pcie_received` are the device's rates
    over PCIe at this moment, `ecc_corrected` the errors corrected since its driver was loaded."""

    number: int
    accelerator: Accelerator
    up: bool = True
    clock_memory: float | None = None
    pcie_sent: float | None = None
    pcie_received: float | None = None
    ecc_corrected: int | None = None
    traffic: tuple[LinkTraffic, ...] = ()


class Seen(msgspec.Struct, frozen=True):
    """What one reading found."""

    functions: tuple[PciFunction, ...] = ()
    devices: tuple[LiveDevice, ...] = ()

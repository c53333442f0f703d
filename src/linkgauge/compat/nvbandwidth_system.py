"""What nvbandwidth prints about the system before it measures."""

from __future__ import annotations

import re

import msgspec

from .base import Context


class System(msgspec.Struct, frozen=True):
    """`cuda` is 1000 times the major version plus 10 times the minor, 0 without CUDA; `devices` are
    indices with model and PCI address."""

    hostname: str
    cuda: int
    driver: str
    devices: tuple[tuple[int, str], ...]


def system_of(context: Context) -> System:
    driver, _, _ = context.devices[0].driver.partition("CUDA ")
    inventory = context.machine.inventory
    drivers = [device.driver for device in inventory.accelerators] if inventory is not None else []
    found = re.search(r"CUDA (\d+)\.(\d+)", context.devices[0].driver)
    cuda = 1000 * int(found[1]) + 10 * int(found[2]) if found else 0
    return System(
        context.machine.host.hostname,
        cuda,
        next(filter(None, [driver.strip(), *drivers]), "unknown"),
        tuple((device.index, _named(device.model, device.pci)) for device in context.devices),
    )


def _named(model: str, pci: str | None) -> str:
    """`NVIDIA H200 (00000000:1b:00)`: the domain with eight digits, without the function."""
    if pci is None:
        return f"{model} (no PCI address)"
    domain, bus, device = pci.partition(".")[0].split(":")
    return f"{model} ({int(domain, 16):08x}:{bus}:{device})"

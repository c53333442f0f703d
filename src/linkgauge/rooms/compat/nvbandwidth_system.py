"""What nvbandwidth prints about the system before it measures."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

import msgspec

from linkgauge.cli.tool import Context
from linkgauge.model.notation import parse_memory


class Located(msgspec.Struct, frozen=True):
    """A device: its index on its host, and its model with the PCI address. `process` is the number
    of the one that measures it, if there are several; then the host's name is null if unknown."""

    index: int
    name: str
    hostname: str | None
    process: int | None = None


class System(msgspec.Struct, frozen=True):
    """`cuda` is 1000 times the major version plus 10 times the minor, 0 without CUDA."""

    hostname: str
    cuda: int
    driver: str
    devices: tuple[Located, ...]

    @property
    def has_processes(self) -> bool:
        return any(device.process is not None for device in self.devices)


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
        tuple(_located(context)),
    )


def _located(context: Context) -> Iterator[Located]:
    fabric = context.fabric
    here = None if fabric.across_ranks else context.machine.host.hostname
    hosts: Sequence[str | None] = fabric.hosts or [here] * len(fabric.devices)
    for device, host in zip(fabric.devices, hosts, strict=True):
        memory = parse_memory(device.memory)
        yield Located(memory.index or 0, _named(device.model, device.pci), host, memory.rank)


def _named(model: str, pci: str | None) -> str:
    """`NVIDIA H200 (00000000:1b:00)`: the domain with eight digits, without the function."""
    if pci is None:
        return f"{model} (no PCI address)"
    domain, bus, device = pci.partition(".")[0].split(":")
    return f"{model} ({int(domain, 16):08x}:{bus}:{device})"

"""Lists the accelerators of a machine's inventory, each with all of its names."""

from __future__ import annotations

import msgspec

from linkgauge.model.hardware.inventory import Accelerator
from linkgauge.model.hardware.machine import Device, Machine
from linkgauge.model.hardware.pcie import is_accelerator


class Subject(msgspec.Struct, frozen=True, kw_only=True):
    """An accelerator. `label` has its names in all backends (`cuda:0/opencl:1`), or its PCI address
    if no backend reaches it. `accelerator` is what the vendor's library reports."""

    label: str
    model: str | None = None
    pci: str | None = None
    accelerator: Accelerator | None = None


def subjects(machine: Machine) -> tuple[Subject, ...]:
    """Returns the accelerators. Accelerators that a library reports come first, then those of other
    backends, then those that only PCI shows. A device without a PCI address (a CPU that OpenCL
    shows) is left out."""
    found: dict[str, Subject] = {}
    listed = (one for one in machine.all_devices if one.pci)
    every: tuple[Accelerator | Device, ...] = (*machine.known.accelerators, *listed)
    for one in every:
        reported = one if isinstance(one, Accelerator) else None
        named = Subject(label=one.memory, model=one.model, pci=one.pci, accelerator=reported)
        known = found.setdefault(one.pci or one.memory, named)
        if one.memory not in known.label.split("/"):
            label = f"{known.label}/{one.memory}"
            found[one.pci or one.memory] = msgspec.structs.replace(known, label=label)
    for function in machine.known.pci:
        if is_accelerator(function):
            place = function.address
            found.setdefault(place, Subject(label=place, model=function.name, pci=place))
    return tuple(found.values())

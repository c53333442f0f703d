"""Lists the accelerators of a machine's inventory, each with all of its names."""

from __future__ import annotations

import re
from collections.abc import Iterable

import msgspec

from linkgauge.model.hardware.inventory import Accelerator, is_accelerator
from linkgauge.model.hardware.machine import Device, Machine


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


def spans(names: Iterable[str]) -> str:
    """Returns consecutive names as ranges: `sim:0-3, sim:7, 0000:01:00.0`."""
    runs: list[list[str]] = []
    for name in names:
        stem, number = _split(name)
        if runs and number and _split(runs[-1][-1]) == (stem, number - 1):
            runs[-1].append(name)
        else:
            runs.append([name])
    return ", ".join(
        f"{first}-{_split(last)[1]}" if others else first
        for first, *others in runs
        for last in others[-1:] or [first]
    )


def _split(name: str) -> tuple[str, int | None]:
    """Splits a name such as `cuda:0` into backend and index. For a PCI address, the index is
    None."""
    match = re.fullmatch(r"([a-z_:]+:)([0-9]+)", name)
    return (match[1], int(match[2])) if match else (name, None)

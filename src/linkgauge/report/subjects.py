"""The accelerators of a machine's inventory, each under all of its names."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import zip_longest

import msgspec

from linkgauge.model.inventory import Accelerator, is_accelerator
from linkgauge.model.machine import Machine


class Subject(msgspec.Struct, frozen=True, kw_only=True):
    """An accelerator: its notations in all backends (`cuda:0/opencl:1`; its PCI address if no
    backend reaches it), its place, and what its library reports."""

    label: str
    model: str | None = None
    pci: str | None = None
    accelerator: Accelerator | None = None


def subjects(machine: Machine) -> tuple[Subject, ...]:
    """Accelerators with a library first, then those of other backends, then those of none. Devices
    without a PCI address (a CPU as OpenCL shows it) are left out."""
    inventory = machine.known
    listed = [
        Subject(label=device.memory, model=device.model, pci=device.pci)
        for devices in machine.devices.values()
        for device in devices
        if device.pci
    ]
    reported = [
        Subject(label=one.memory, model=one.model, pci=one.pci, accelerator=one)
        for one in inventory.accelerators
    ]
    found: dict[str, Subject] = {}
    for subject in (*reported, *listed):
        known = found.setdefault(subject.pci or subject.label, subject)
        if subject.label not in known.label.split("/"):
            label = f"{known.label}/{subject.label}"
            found[subject.pci or subject.label] = msgspec.structs.replace(known, label=label)
    for function in inventory.pci:
        if is_accelerator(function) and function.address not in found:
            found[function.address] = Subject(
                label=function.address, model=function.name, pci=function.address
            )
    return tuple(found.values())


def spans(names: Iterable[str]) -> str:
    """Consecutive names as ranges: `sim:0-3, sim:7, 0000:01:00.0`."""
    return ", ".join(
        f"{first}-{_split(last)[1]}" if first != last else first
        for first, last in _runs(tuple(names))
    )


def _runs(names: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    first: str | None = None
    for name, after in zip_longest(names, names[1:]):
        first = first or name
        (stem, number), following = _split(name), after and _split(after)
        if number is None or following != (stem, number + 1):
            yield first, name
            first = None


def _split(name: str) -> tuple[str, int | None]:
    """A notation's backend and index; a PCI address has no index."""
    match = re.fullmatch(r"([a-z_:]+:)([0-9]+)", name)
    return (match[1], int(match[2])) if match else (name, None)

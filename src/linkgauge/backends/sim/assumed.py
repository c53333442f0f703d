"""Lists what a description assumes because nothing states it, as values of the machine."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from linkgauge.model.grouped import grouped
from linkgauge.model.hardware.gaps import AssumedFact, Assumption
from linkgauge.model.hardware.pcie import generation
from linkgauge.model.units import approximate_size

from .hardware import DeviceUnit, Hardware, NodeUnit, SimLink
from .topology import SimTopology

_Known = tuple[AssumedFact, str]


def assumptions(hardware: Hardware, topology: SimTopology) -> tuple[Assumption, ...]:
    """Returns the assumed facts, equal ones of several parts together."""
    found = grouped(_each(hardware, topology))
    return tuple(
        Assumption(fact, value, tuple(dict.fromkeys(parts)))
        for (fact, value), parts in found.items()
    )


def _each(hardware: Hardware, topology: SimTopology) -> Iterator[tuple[_Known, str]]:
    for number, link in enumerate(hardware.links):
        if link.common.assumed:
            for part in _ends(number, link, hardware, topology):
                yield _of_link(link), part
    for adapter in hardware.adapters:
        if adapter.group.assumed:
            yield ("port", _rate(adapter.group.rate)), adapter.name
    units: tuple[DeviceUnit | NodeUnit, ...] = (*hardware.devices, *hardware.nodes)
    for unit in units:
        for field in unit.group.assumed:
            fact, shown = _SHOWN[field]
            yield (fact, shown(getattr(unit.group, field))), unit.name


def _of_link(link: SimLink) -> _Known:
    kind = link.common
    if link.kind == "pcie" and kind.speed and kind.width:
        return "PCIe link", f"Gen {generation(kind.speed)} x{kind.width}"
    if link.kind == "socket":
        return "link between nodes", _rate(link.rate)
    count = kind.count
    return "link", f"{count} × {_rate(link.rate / count)}" if count > 1 else _rate(link.rate)


def _ends(number: int, link: SimLink, hardware: Hardware, topology: SimTopology) -> Iterator[str]:
    """Yields the memories at the ends of a link. A link above a PCIe switch counts for the devices
    below."""
    devices = [unit.name for unit in hardware.cards]
    nodes = [node.name for node in hardware.nodes]
    ends = [end for end in (link.a, link.b) if end in devices]
    if link.kind == "socket":
        ends = [end for end in (link.a, link.b) if end in nodes]
    if ends:
        yield from ends
        return
    for device in devices:
        route = topology.route(device, f"host:{topology.nearest_node(device)}")
        if route and any(crossing.number == number for crossing in route.crossings):
            yield device


def _rate(rate: float | None) -> str:
    return "no limit" if rate is None else f"{rate / 1e9:g} GB/s"


def _nanoseconds(seconds: float) -> str:
    return f"{seconds * 1e9:g} ns"


_SHOWN: Mapping[str, tuple[AssumedFact, Callable[[Any], str]]] = {
    "cpus": ("CPUs", str),
    "memory": ("memory size", approximate_size),
    "rate": ("memory rate", _rate),
    "memory_rate": ("memory rate", _rate),
    "latency": ("latency", _nanoseconds),
    "memory_latency": ("latency", _nanoseconds),
}
"""The assumed fact of each field of a group of devices or nodes, and how its value is shown."""

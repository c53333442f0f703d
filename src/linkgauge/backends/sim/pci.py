"""Makes a simulated machine's PCI functions: devices, and all bridges above them. A part with a
`pcie` link is below a port of the switch, root complex or node at the link's other end. A device
without a `pcie` link (NVLink-C2C) is below its nearest node. Bus numbers may be invented."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from itertools import chain, count
from operator import attrgetter
from typing import Any

import msgspec

from linkgauge.model.errors import InputError
from linkgauge.model.hardware.gaps import NO_NAMES, NONE_LISTED, NOT_GROUPED, Gap
from linkgauge.model.hardware.inventory import PciFunction, PciLink, PortType

from .description import AdapterGroup, SwitchGroup
from .hardware import AdapterUnit, DeviceUnit, Hardware, SimLink, SwitchUnit
from .sensors import Symptoms
from .topology import SimTopology

_ROOT_PORT = (0x1B36, 0x000C)
"""The vendor and device numbers of root ports, which are QEMU's."""
_BRIDGE, _ACCELERATOR, _GRAPHICS = 0x060400, 0x120000, 0x030200
"""PCI class codes of a PCI-to-PCI bridge, a processing accelerator and a 3D controller."""
_NVIDIA = 0x10DE
_BUSES = 256
_REDIRECTIONS = ("request redirect", "completion redirect")
_LEAST_SIZE = 128
"""The size of packets and of read requests in bytes, if the description has none."""
_OF_LINK = tuple(f"link.{field}" for field in PciLink.__struct_fields__)
_OF_PACKETS = ("max_payload", "max_read_request")
NOT_DESCRIBED = "the machine's description has no PCIe link for it"


_Unit = DeviceUnit | AdapterUnit | SwitchUnit


class _BusSlot(msgspec.Struct, frozen=True):
    unit: _Unit
    link: SimLink | None
    node: int
    domain: str
    bus: int
    inner: int = 0
    below: tuple[_BusSlot, ...] = ()


def functions(
    hardware: Hardware, topology: SimTopology, symptoms: Symptoms, grouped: bool
) -> tuple[PciFunction, ...]:
    """Returns PCI functions, sorted by address. Raises InputError if bus numbers run out."""
    found = _BusNumbering(hardware, topology, symptoms, grouped).functions()
    return tuple(sorted(found, key=lambda one: (len(one.address), one.address)))


def unread(hardware: Hardware) -> tuple[Gap, ...]:
    if not hardware.adapters and not any(map(attrgetter("pci"), hardware.devices)):
        return (NONE_LISTED,)
    return () if _models(hardware) else (NO_NAMES,)


class _BusNumbering:
    def __init__(
        self, hardware: Hardware, topology: SimTopology, symptoms: Symptoms, grouped: bool
    ) -> None:
        self._topology = topology
        self._symptoms = symptoms
        self._groups = count() if grouped else None
        self._models = _models(hardware)
        self._makers = {vendor: name.split()[0] for (vendor, _), name in self._models.items()}
        units: tuple[_Unit, ...] = (*hardware.cards, *hardware.switches)
        self._units = dict(zip(map(attrgetter("name"), units), units, strict=True))
        self._used: defaultdict[str, set[int]] = defaultdict(set)
        for domain, bus in filter(None, map(_place, hardware.cards)):
            self._used[domain].add(bus)
        joined: defaultdict[str, list[tuple[str, SimLink]]] = defaultdict(list)
        for link in hardware.links:
            if link.kind == "pcie":
                joined[link.a].append((link.b, link))
                joined[link.b].append((link.a, link))
        self._below: dict[str, list[tuple[str, SimLink | None]]] = {}
        reached = [switch.name for switch in hardware.switches if switch.group.kind != "pcie"]
        reached += map(attrgetter("name"), hardware.nodes)
        cards, seen = set(map(attrgetter("name"), hardware.cards)), set(reached)
        for here in reached:
            self._below[here] = []
            for there, link in joined[here]:
                if there not in seen:
                    seen.add(there)
                    self._below[here].append((there, link))
                    if there not in cards:
                        reached.append(there)
        for unit in hardware.cards:
            if unit.name not in seen:
                near = topology.nearest_node(unit.name)
                self._below[f"host:{near}"].append((unit.name, None))

    def functions(self) -> Iterator[PciFunction]:
        bridges: defaultdict[tuple[str, str], list[_BusSlot]] = defaultdict(list)
        for top, below in self._below.items():
            unit = self._units.get(top)
            if isinstance(unit, SwitchUnit) and unit.group.kind == "pcie":
                continue
            for name, link in below:
                seat = self._seat(name, link)
                if seat is not None:
                    bridges[seat.domain, top].append(seat)
        for (domain, _), seats in bridges.items():
            used = self._used[domain]
            root = self._free_bus(domain, min(seat.bus for seat in seats)) if 0 in used else 0
            used.add(root)
            for number, seat in enumerate(seats):
                # From device 1 up, with functions 1 to 7 each, as AMD numbers root ports.
                address = f"{domain}:{root:02x}:{1 + number // 7:02x}.{1 + number % 7}"
                yield self._function(seat, "root port", address, None, _ROOT_PORT, acs=())
                yield from self._functions(seat, address)

    def _functions(self, seat: _BusSlot, parent: str) -> Iterator[PciFunction]:
        group = seat.unit.group
        ids, revision = (group.vendor_id, group.device_id), group.revision
        if not isinstance(seat.unit, SwitchUnit):
            code = _GRAPHICS if group.vendor_id == _NVIDIA else _ACCELERATOR
            code = group.class_code if isinstance(group, AdapterGroup) else code
            own = {"class_code": code, "revision": revision}
            yield self._function(seat, "endpoint", seat.unit.pci or "", parent, ids, **own)
            return
        address = f"{seat.domain}:{seat.bus:02x}:00.0"
        yield self._function(seat, "upstream port", address, parent, ids, revision=revision)
        acs = _REDIRECTIONS if seat.unit.group.acs_redirect else ()
        for number, child in enumerate(seat.below):
            port = f"{seat.domain}:{seat.inner:02x}:{number % 32:02x}.{number // 32}"
            yield self._function(child, "downstream port", port, address, ids, acs=acs)
            yield from self._functions(child, port)

    def _function(
        self,
        seat: _BusSlot,
        port: PortType,
        address: str,
        parent: str | None,
        ids: tuple[int, int],
        **others: Any,
    ) -> PciFunction:
        link = None if seat.link is None else self._symptoms.pcie(seat.link, idle=True)
        errors = 0 if seat.link is None else self._symptoms.errors(seat.link)
        sizes = {"max_payload_supported": _LEAST_SIZE}
        if seat.link is not None and link is not None:
            kind = seat.link.common
            sizes = {"max_payload": kind.max_payload, "max_payload_supported": kind.max_payload,
                     "max_read_request": kind.max_read_request}  # fmt: skip
        elif port != "endpoint":
            sizes |= {"max_payload": _LEAST_SIZE, "max_read_request": _LEAST_SIZE}
        unknown = () if self._groups is not None else (Gap(NOT_GROUPED, "iommu_group"),)
        if link is None:
            packets = _OF_PACKETS if port == "endpoint" else ()
            unknown = (*unknown, Gap(NOT_DESCRIBED, *_OF_LINK, *packets))
        maker = self._makers.get(ids[0])
        return PciFunction(
            address=address,
            vendor=ids[0],
            device=ids[1],
            name=self._models.get(ids) or (maker and f"{maker} Device {ids[1]:04x}"),
            numa_node=seat.node,
            port=port,
            parent=parent,
            link=link or PciLink(),
            errors={"correctable": errors, "nonfatal": 0, "fatal": 0},
            iommu_group=None if self._groups is None else next(self._groups),
            unknown=unknown,
            **{"class_code": _BRIDGE, "revision": 0, **sizes, **others},
        )

    def _seat(self, name: str, link: SimLink | None) -> _BusSlot | None:
        unit = self._units[name]
        if not isinstance(unit, SwitchUnit):
            place = _place(unit)
            return place and _BusSlot(unit, link, self._topology.node_of(unit), *place)
        seats = (self._seat(*child) for child in self._below.get(name, ()))
        below = tuple(seat for seat in seats if seat is not None)
        if not below:
            return None
        domain = below[0].domain
        inner = self._free_bus(domain, min(seat.bus for seat in below))
        bus = self._free_bus(domain, inner)
        near = self._topology.nearest_node(name)
        return _BusSlot(unit, link, near, domain, bus, inner, below)

    def _free_bus(self, domain: str, under: int) -> int:
        used = self._used[domain]
        for bus in chain(range(under - 1, 0, -1), range(_BUSES - 1, under, -1)):
            if bus not in used:
                used.add(bus)
                return bus
        raise InputError(
            f"machine description: domain {domain} has no PCI bus left: give devices pci addresses "
            "in several domains"
        )


def _models(hardware: Hardware) -> dict[tuple[int, int], str]:
    units: tuple[AdapterUnit | SwitchUnit, ...] = (*hardware.adapters, *hardware.switches)
    models: dict[tuple[int, int], str] = {}
    for unit in units:
        of = unit.group
        if " " in of.model and not (isinstance(of, SwitchGroup) and of.kind == "network"):
            models[of.vendor_id, of.device_id] = of.model
    return models


def _place(device: DeviceUnit | AdapterUnit) -> tuple[str, int] | None:
    if device.pci is None:
        return None
    domain, bus, _ = device.pci.split(":")
    return domain, int(bus, 16)

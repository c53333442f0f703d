"""The PCI functions of a simulated machine: its devices, and every bridge above them.

A device or a PCIe switch hangs from what its `pcie` link leads to on the way to the host: another
PCIe switch, or a root port of the host bridge of a root complex or of a node. A device without
such a link (NVLink-C2C) hangs from its nearest node, and its link is unknown. Bus numbers that the
description leaves open are the highest free ones below those of the devices.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain

import msgspec

from linkgauge.model.errors import InputError

from .hardware import DeviceUnit, Hardware, Link, SwitchUnit
from .registers import Buses, LinkState, PortType
from .symptoms import Symptoms
from .topology import Topology

_ROOT_PORT = (0x1B36, 0x000C)
"""Vendor and device of root ports: QEMU's."""
_BRIDGE, _ACCELERATOR, _GRAPHICS = 0x060400, 0x120000, 0x030200
"""Class codes: PCI-to-PCI bridge, processing accelerator, 3D controller."""
_NVIDIA = 0x10DE
_BUSES = 256


class Function(msgspec.Struct, frozen=True):
    """A PCI function: `folder` is its path below sys/devices, `link` the one towards the host of
    a device or an upstream port, the one away from it of a root or a downstream port (null:
    unknown), `errors` what it has counted. `buses` are a bridge's; it may redirect by ACS."""

    address: str
    folder: str
    port: PortType
    vendor: int
    device: int
    class_code: int
    node: int
    link: LinkState | None
    buses: Buses | None = None
    errors: int = 0
    revision: int = 0
    acs_redirect: bool = False


class _Seat(msgspec.Struct, frozen=True):
    """A device or a switch on the bus that it sits on; `inner` is the bus within a switch."""

    unit: DeviceUnit | SwitchUnit
    link: LinkState | None
    errors: int
    node: int
    domain: str
    bus: int
    highest: int
    inner: int = 0
    below: tuple[_Seat, ...] = ()


def functions(hardware: Hardware, topology: Topology, symptoms: Symptoms) -> tuple[Function, ...]:
    """All functions, each bridge before what is below it. Raises InputError if buses run out."""
    return tuple(_Tree(hardware, topology, symptoms).functions())


class _Tree:
    def __init__(self, hardware: Hardware, topology: Topology, symptoms: Symptoms) -> None:
        self._topology = topology
        self._symptoms = symptoms
        self._units: dict[str, DeviceUnit | SwitchUnit] = {
            **{device.name: device for device in hardware.devices},
            **{switch.name: switch for switch in hardware.switches},
        }
        self._used: dict[str, set[int]] = {}
        for device in hardware.devices:
            domain, bus = _place(device)
            self._used.setdefault(domain, set()).add(bus)
        self._below = _hang(hardware, topology)

    def functions(self) -> Iterator[Function]:
        bridges: dict[tuple[str, str], list[_Seat]] = {}
        for top, below in self._below.items():
            unit = self._units.get(top)
            if isinstance(unit, SwitchUnit) and unit.group.kind == "pcie":
                continue
            for name, link in below:
                seat = self._seat(name, link)
                if seat is not None:
                    bridges.setdefault((seat.domain, top), []).append(seat)
        for (domain, _), seats in bridges.items():
            root = self._root_bus(domain, min(seat.bus for seat in seats))
            for number, seat in enumerate(seats):
                # Devices 1 up, with functions 1 to 7 each, as AMD's root ports are numbered.
                address = f"{domain}:{root:02x}:{1 + number // 7:02x}.{1 + number % 7}"
                folder = f"pci{domain}:{root:02x}/{address}"
                yield _bridge(seat, address, folder, PortType.ROOT, _ROOT_PORT, root)
                yield from self._functions(seat, folder)

    def _functions(self, seat: _Seat, above: str) -> Iterator[Function]:
        group = seat.unit.group
        ids = (group.vendor_id, group.device_id)
        if isinstance(seat.unit, DeviceUnit):
            folder, code = f"{above}/{seat.unit.pci}", _ACCELERATOR
            if group.vendor_id == _NVIDIA:
                code = _GRAPHICS
            yield Function(
                seat.unit.pci,
                folder,
                PortType.ENDPOINT,
                *ids,
                code,
                seat.node,
                seat.link,
                errors=seat.errors,
                revision=group.revision,
            )
            return
        address = f"{seat.domain}:{seat.bus:02x}:00.0"
        folder = f"{above}/{address}"
        buses = Buses(seat.bus, seat.inner, seat.highest)
        yield Function(
            address,
            folder,
            PortType.UPSTREAM,
            *ids,
            _BRIDGE,
            seat.node,
            seat.link,
            buses,
            seat.errors,
            group.revision,
        )
        for number, child in enumerate(seat.below):
            port = f"{seat.domain}:{seat.inner:02x}:{number % 32:02x}.{number // 32}"
            bridge = _bridge(child, port, f"{folder}/{port}", PortType.DOWNSTREAM, ids, seat.inner)
            yield msgspec.structs.replace(bridge, acs_redirect=seat.unit.group.acs_redirect)
            yield from self._functions(child, f"{folder}/{port}")

    def _seat(self, name: str, link: Link | None) -> _Seat | None:
        """Where a unit sits; None for a switch without a device below it."""
        unit = self._units[name]
        state = None if link is None else self._symptoms.pcie(link)
        errors = 0 if link is None else self._symptoms.errors(link)
        if isinstance(unit, DeviceUnit):
            domain, bus = _place(unit)
            return _Seat(unit, state, errors, self._topology.node_of(unit), domain, bus, bus)
        seats = (self._seat(*child) for child in self._below.get(name, ()))
        below = tuple(seat for seat in seats if seat is not None)
        if not below:
            return None
        domain, highest = below[0].domain, max(seat.highest for seat in below)
        inner = self._free_bus(domain, min(seat.bus for seat in below))
        bus = self._free_bus(domain, inner)
        near = self._topology.nearest_node(name)
        return _Seat(unit, state, errors, near, domain, bus, highest, inner, below)

    def _root_bus(self, domain: str, lowest: int) -> int:
        if 0 not in self._used[domain]:
            self._used[domain].add(0)
            return 0
        return self._free_bus(domain, lowest)

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


def _hang(hardware: Hardware, topology: Topology) -> dict[str, list[tuple[str, Link | None]]]:
    """What hangs directly below each node and switch, by which link."""
    beside: dict[str, list[tuple[str, Link]]] = {}
    for link in hardware.links:
        if link.kind.kind == "pcie":
            beside.setdefault(link.a, []).append((link.b, link))
            beside.setdefault(link.b, []).append((link.a, link))
    tops = [switch.name for switch in hardware.switches if switch.group.kind != "pcie"]
    tops += [node.name for node in hardware.nodes]
    below: dict[str, list[tuple[str, Link | None]]] = {name: [] for name in tops}
    devices = {device.name for device in hardware.devices}
    seen, reached = set(tops), list(tops)
    for here in reached:
        for there, link in beside.get(here, ()):
            if there not in seen:
                seen.add(there)
                below.setdefault(here, []).append((there, link))
                if there not in devices:
                    reached.append(there)
    for device in hardware.devices:
        if device.name not in seen:
            below[f"host:{topology.nearest_node(device.name)}"].append((device.name, None))
    return below


def _bridge(
    seat: _Seat, address: str, folder: str, port: PortType, ids: tuple[int, int], primary: int
) -> Function:
    """The port directly above `seat`."""
    buses = Buses(primary, seat.bus, seat.highest)
    return Function(address, folder, port, *ids, _BRIDGE, seat.node, seat.link, buses, seat.errors)


def _place(device: DeviceUnit) -> tuple[str, int]:
    domain, bus, _ = device.pci.split(":")
    return domain, int(bus, 16)

"""Checks inside the guest: devices that are passed through, where they show and at which node."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from linkgauge.judge.doctor import links
from linkgauge.judge.findings import Finding
from linkgauge.judge.remedies import kernel_log
from linkgauge.model.part import Part
from linkgauge.model.virtual import BusFunction
from linkgauge.rooms.vm.domain import HostDevice, Route

from .comparison import Comparison, faults, several

_BRIDGE = 0x06
MADE_UP = (0x1AF4, 0x1B36, 0x1234, 0x15AD)
"""Vendors of functions that are a hypervisor's own: virtio, QEMU's (Red Hat), its VGA, VMware."""
_EMULATED = ((0x8086, 0x10D3), (0x8086, 0x10C9), (0x1013, 0x00B8))
"""Functions that QEMU emulates with the subsystem of the original: e1000e, igb, Cirrus."""


def is_real(function: BusFunction) -> bool:
    """Whether a guest's function can be a host's: neither a bridge nor of the hypervisor itself,
    which marks what it emulates by its subsystem's vendor."""
    if function.class_code is None or function.class_code >> 16 == _BRIDGE:
        return False
    if function.vendor in MADE_UP or function.subsystem == MADE_UP[0]:
        return False
    return (function.vendor, function.device) not in _EMULATED


def matched(case: Comparison) -> dict[str, BusFunction]:
    """The guest's function of each device that is passed through, by its address on the host, as
    far as the domain says where it is."""
    real = [function for function in case.virtual.functions or () if is_real(function)]
    found = {}
    for device in case.domain.devices:
        route = case.domain.route_to(device)
        place = next((f for f in real if route and _is_at(f, route)), None)
        if place is not None:
            found[device.source] = place
    return found


def _is_at(function: BusFunction, route: Route) -> bool:
    if len(function.route) != len(route.steps):
        return False
    places = [_place(address) for address in function.route]
    domain, bus = places[0][:2]
    if domain or (bus == 0 if route.root_bus is None else bus != route.root_bus):
        return False
    return tuple(place[2:] for place in places) == route.steps


def _place(address: str) -> tuple[int, int, int, int]:
    """Domain, bus, slot and function."""
    domain, bus, rest = address.split(":")
    slot, _, function = rest.partition(".")
    return int(domain, 16), int(bus, 16), int(slot, 16), int(function, 16)


def check_devices(case: Comparison) -> Iterator[Finding]:
    devices = case.domain.devices
    if not devices:
        return
    functions = case.virtual.functions
    if functions is None or not all(function.is_known for function in functions):
        found = "cannot read all of the guest's PCI functions"
        yield Finding(
            "device", "unknown", "devices", found, remedy=("# Run it in the guest itself.",)
        )
        return
    there = matched(case)
    why = "the guest has fewer devices than the domain passes through"
    remedy = (f"lspci -nn; {kernel_log('pci', 'vfio')}", *case.again)
    for device in devices:
        if case.domain.route_to(device) is not None and device.source not in there:
            found = f"it is passed through, but the guest does not show it{_where(device)}"
            yield Finding("device", "fail", Part.function(device.source), found, why, remedy)
    yield from _check_count(case, there, remedy)


def _where(device: HostDevice) -> str:
    at = device.guest
    return f" at bus {at.bus:#04x}, slot {at.slot:#04x}, function {at.function}" if at else ""


def _check_count(
    case: Comparison, there: Mapping[str, BusFunction], remedy: tuple[str, ...]
) -> Iterator[Finding]:
    """Devices whose place the domain leaves open: there must be as many functions."""
    devices = case.domain.devices
    anywhere = [one.source for one in devices if case.domain.route_to(one) is None]
    taken = {function.address for function in there.values()}
    free = [f for f in case.virtual.functions or () if is_real(f) and f.address not in taken]
    if len(free) < len(anywhere):
        found = f"{several(len(anywhere), 'device')} passed through, but the guest shows only "
        found += f"{len(free)}: {', '.join(anywhere[:4])}"
        why = "the guest has fewer devices than the domain passes through"
        yield Finding("device", "fail", "devices", found, why, remedy)


def check_device_nodes(case: Comparison) -> Iterator[Finding]:
    """The node that the guest sees of a device: that of the expander above it; none without."""
    for source, function in matched(case).items():
        device = next(one for one in case.domain.devices if one.source == source)
        cell = case.domain.cell_of(device)
        part = Part("function", f"{function.address} (host: {source})", (function.address,))
        node = None if cell is None else case.node_of_cell.get(cell)
        if node is not None and len(case.cells) > 1 and function.numa_node != node:
            sees = "no node" if function.numa_node is None else f"node {function.numa_node}"
            found = f"the guest sees it at {sees}; its expander belongs to cell {cell}, node {node}"
            why = "drivers and linkgauge place buffers on another node"
            yield Finding("device-node", "fail", part, found, why, case.again)
        elif cell is None and len(case.cells) > 1 and function.numa_node is None:
            found = f"the guest does not know which of its {len(case.cells)} nodes is near"
            why = "drivers and linkgauge place buffers on any node"
            remedy = (
                "# Run linkgauge vm on the host: it prints an expander (pxb-pcie) for each node."
            )
            yield Finding("device-node", "warn", part, found, why, (remedy,))


def check_links(case: Comparison) -> Iterator[Finding]:
    """The doctor's checks of the links of what is passed through: a link that trained too low on
    the host is as slow in the guest."""
    if case.domain.devices:
        yield from faults(case.evidence, links.OF_LINKS)

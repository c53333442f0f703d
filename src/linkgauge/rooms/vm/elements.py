"""The elements of a domain as a placement has them: whole, to paste in place of the domain's own.

What a placement does not concern stays in them (shares, features of the CPU, a device's driver).
The text is ASCII: any other character, and what would move a terminal's cursor, stands as a
reference.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from typing import NamedTuple
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from defusedxml.ElementTree import fromstring

from linkgauge.machine.tree import ranges

from .checks.planner import Suited
from .domain import Domain, HostDevice

_KIB = 1 << 10
_BUSES = 256


def elements_of(domain: Domain, suited: Suited, vendor: str | None = None) -> tuple[str, ...]:
    """Those that differ from the domain's, each well-formed; `vendor` is of the host's CPU."""
    made = (
        _vcpu(domain),
        _cputune(domain, suited),
        _numatune(suited),
        _memory_backing(domain, suited),
        _cpu(domain, suited, vendor),
    )
    texts = {element.tag: text_of(element) for element in made if element is not None}
    changed = (text for tag, text in texts.items() if text != _as_is(domain, tag))
    return (*changed, *map(text_of, _devices(domain, suited)))


def text_of(element: Element) -> str:
    """Its text: indented, without anything that is not printable ASCII."""
    indent(element)
    element.tail = None
    text = tostring(element, encoding="us-ascii").decode()
    text = text.removeprefix("<?xml version='1.0' encoding='us-ascii'?>\n").replace(" />", "/>")
    return "".join(c if " " <= c <= "~" or c == "\n" else f"&#{ord(c)};" for c in text)


def _own(domain: Domain, tag: str) -> Element:
    """A copy of the domain's element; an empty one if it has none."""
    text = domain.elements.get(tag)
    return Element(tag) if text is None else _parsed(text)


def _parsed(text: str) -> Element:
    element: Element = fromstring(text)
    return element


def _as_is(domain: Domain, tag: str) -> str | None:
    text = domain.elements.get(tag)
    return None if text is None else text_of(_parsed(text))


def _without(element: Element, *tags: str) -> Element:
    for child in [child for child in element if child.tag in tags]:
        element.remove(child)
    return element


def _vcpu(domain: Domain) -> Element | None:
    """Only where numad would choose."""
    if not domain.automatic:
        return None
    element = _own(domain, "vcpu")
    element.set("placement", "static")
    return element


def _cputune(domain: Domain, suited: Suited) -> Element:
    element = _own(domain, "cputune")
    emulator, threads = suited.emulator, dict.fromkeys(domain.iothreads, suited.emulator)
    if domain.emulator_pin == emulator:
        threads |= domain.iothread_pins
    own = (domain.vcpu_pins, domain.emulator_pin, domain.iothread_pins)
    if own == (suited.pins, emulator, threads):
        return element
    _without(element, "vcpupin", "emulatorpin", "iothreadpin")
    vcpus = suited.pins.items()
    pins = [
        *(Element("vcpupin", vcpu=str(vcpu), cpuset=ranges(at)) for vcpu, at in vcpus),
        Element("emulatorpin", cpuset=ranges(emulator)),
        *(Element("iothreadpin", iothread=str(n), cpuset=ranges(at)) for n, at in threads.items()),
    ]
    element[:0] = pins
    return element


def _numatune(suited: Suited) -> Element | None:
    """All memory bound to the nodes, that of each cell to its own."""
    if not suited.nodes:
        return None
    element = Element("numatune")
    nodes = {node for at in suited.nodes.values() for node in at}
    SubElement(element, "memory", mode="strict", nodeset=ranges(nodes))
    if len(suited.nodes) > 1:
        for cell, at in suited.nodes.items():
            SubElement(element, "memnode", cellid=str(cell), mode="strict", nodeset=ranges(at))
    return element


def _memory_backing(domain: Domain, suited: Suited) -> Element | None:
    if suited.page_size is None:
        return None
    element = _without(_own(domain, "memoryBacking"), "hugepages")
    pages = Element("hugepages")
    SubElement(pages, "page", size=str(suited.page_size // _KIB), unit="KiB")
    element.insert(0, pages)
    return element


def _cpu(domain: Domain, suited: Suited, vendor: str | None) -> Element | None:
    topology = suited.topology
    if topology is None:
        return None
    element = _own(domain, "cpu")
    if "cpu" not in domain.elements:
        element.set("mode", "host-passthrough")
    if topology != domain.topology:
        _without(element, "topology")
        parts = {name: getattr(topology, name) for name in topology.__struct_fields__}
        shown = {name: str(n) for name, n in parts.items() if n > 1 or name != "clusters"}
        element.insert(_place(element), Element("topology", shown))
    if topology.threads > 1 and vendor == "AuthenticAMD" and "topoext" not in domain.features:
        SubElement(element, "feature", policy="require", name="topoext")
    if suited.cells and suited.cells != domain.cells:
        _without(element, "numa")
        numa = SubElement(element, "numa")
        for cell in suited.cells:
            made = SubElement(
                numa, "cell", id=str(cell.index), cpus=ranges(cell.vcpus),
                memory=str(cell.memory // _KIB), unit="KiB",
            )  # fmt: skip
            if cell.distances:
                far = SubElement(made, "distances")
                for other, distance in cell.distances.items():
                    SubElement(far, "sibling", id=str(other), value=str(distance))
    return element


def _place(element: Element) -> int:
    """Behind the model and the vendor."""
    return sum(child.tag in ("model", "vendor") for child in element)


class _Port(NamedTuple):
    """The functions of a device, which share a root port, and the cell that they are near to."""

    cell: int
    devices: list[HostDevice]


def _devices(domain: Domain, suited: Suited) -> Iterator[Element]:
    """For the cards that are at no cell or at another than their node's: an expander for each cell,
    a root port for each card, and their functions there. None where the machine has no expanders.
    """
    known = [one for one in domain.devices if one.source in suited.device_cells]
    home = {_slot(one): suited.device_cells[one.source] for one in known}
    misplaced = {_slot(one) for one in known if home[_slot(one)] != domain.cell_of(one)}
    if not misplaced or not has_expanders(domain):
        return
    ports: dict[str, _Port] = {}
    for device in domain.devices:
        slot = _slot(device)
        if slot in misplaced:
            ports.setdefault(slot, _Port(home[slot], [])).devices.append(device)
    indexes = count(max((one.index for one in domain.controllers), default=0) + 1)
    numbers = [one.bus_number for one in domain.controllers if one.bus_number]
    next_bus = min(numbers, default=_BUSES)
    for cell in sorted({port.cell for port in ports.values()}):
        inside = [port for port in ports.values() if port.cell == cell]
        expander = next(indexes)
        next_bus -= len(inside) + 1
        yield _expander(expander, next_bus, cell)
        for place, port in enumerate(inside):
            index = next(indexes)
            yield _root_port(index, expander, place)
            yield from (_moved(device, index, port) for device in port.devices)


def _slot(device: HostDevice) -> str:
    """The functions of a card share it."""
    return device.source.rpartition(".")[0]


def has_expanders(domain: Domain) -> bool:
    """Whether the machine takes pxb-pcie: QEMU's q35 and Arm's virt."""
    machine = domain.machine or ""
    return "q35" in machine or machine.startswith("virt")


def _expander(index: int, bus_number: int, cell: int) -> Element:
    element = Element("controller", type="pci", index=str(index), model="pcie-expander-bus")
    target = SubElement(element, "target", busNr=str(bus_number))
    SubElement(target, "node").text = str(cell)
    return element


def _root_port(index: int, bus: int, slot: int) -> Element:
    element = Element("controller", type="pci", index=str(index), model="pcie-root-port")
    SubElement(element, "address", _address(bus, slot, 0))
    return element


def _moved(device: HostDevice, bus: int, port: _Port) -> Element:
    """The device behind the root port, with the function that it has on the host."""
    element = _without(_parsed(device.element), "address")
    function = int(device.source[-1], 16)
    firsts = min(int(one.source[-1], 16) for one in port.devices)
    several = {"multifunction": "on"} if function == firsts and len(port.devices) > 1 else {}
    SubElement(element, "address", _address(bus, 0, function - firsts) | several)
    return element


def _address(bus: int, slot: int, function: int) -> dict[str, str]:
    return {
        "type": "pci", "domain": "0x0000", "bus": f"{bus:#04x}", "slot": f"{slot:#04x}",
        "function": f"{function:#x}",
    }  # fmt: skip

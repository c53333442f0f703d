"""What was found of a virtual machine, for people and programs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import count
from shlex import quote
from typing import NamedTuple
from xml.etree.ElementTree import Element, SubElement, indent, tostring

import msgspec
from defusedxml.ElementTree import fromstring
from rich.console import RenderableType

from linkgauge.machine.tree import ranges
from linkgauge.report.blocks import Block, Code, Line, Problem, Prose, Span, cut, line, plain
from linkgauge.report.files import json_document
from linkgauge.report.results import SIMULATED
from linkgauge.report.sections import findings
from linkgauge.report.words.remedies import steps

from .checks import DomainFindings
from .checks.comparison import Decision
from .checks.planner import Suited
from .domain import Domain, HostDevice
from .message import message

_LONGEST = 60
_HOW_TO_GET_ONE = (
    "virsh list --all",
    "virsh dumpxml NAME > NAME.xml  # of a running domain: as it runs",
    "linkgauge vm NAME.xml",
)


class DomainReport(msgspec.Struct, frozen=True, kw_only=True):
    """`domain` is null of a guest by itself; of a host without a domain, `running` and `defined`
    are the names of those that it has. `vendor` is its CPU's."""

    decision: Decision
    domain: Domain | None = None
    judged: DomainFindings = DomainFindings()
    running: Sequence[str] = ()
    defined: Sequence[str] = ()
    vendor: str | None = None
    simulated: str | None = None

    @property
    def elements(self) -> tuple[str, ...]:
        if self.domain is None or self.judged.suited is None:
            return ()
        return elements_of(self.domain, self.judged.suited, self.vendor)

    @property
    def message(self) -> tuple[str, ...]:
        if self.decision.role != "guest":
            return ()
        return message(self.judged.findings, self.domain)


def domain_blocks(report: DomainReport) -> Iterator[Block | RenderableType]:
    mark = [] if report.simulated is None else [line(SIMULATED, f" {report.simulated}")]
    yield Prose([*mark, _heading(report)])
    if report.domain is None and report.decision.role == "host":
        yield _how_to_get_one(report)
        return
    yield from findings.blocks(report.judged.findings, "vm")
    if lines := report.message:
        caption = "To send to the host's administrator, the cheapest first:"
        yield Code(plain(caption, "strong"), lines)
    if report.domain is not None:
        yield from _placement(report, report.domain, report.judged)


def _heading(report: DomainReport) -> Line:
    role = report.decision.role or "unknown"
    reasons = "; ".join(report.decision.reasons) or "no sign of a hypervisor"
    because = Span(f" ({' '.join(reasons.split())})", "dim")
    if report.domain is None:
        return line(f"virtual machine, read as a {role}", because)
    name = Span(shown_name(report.domain.name), "strong")
    return line("domain ", name, f", beside its {role}", because)


def shown_name(name: str) -> str:
    """A name, which may be long or none."""
    return cut(name, _LONGEST) or "without a name"


def _how_to_get_one(report: DomainReport) -> Problem:
    running = ", ".join(map(shown_name, report.running))
    defined = ", ".join(f"/{shown_name(path)}" for path in report.defined)
    domains = {"running here (names as shortened by systemd)": running, "defined here": defined}
    said = [(name, plain(listed)) for name, listed in domains.items() if listed]
    found = plain("This machine is a host: give the domain to compare it with.")
    return Problem("", "", "", found, said, tuple(steps(_HOW_TO_GET_ONE)), "to get it")


def _placement(report: DomainReport, domain: Domain, judged: DomainFindings) -> Iterator[Block]:
    lines = [text for element in report.elements for text in element.splitlines()]
    if judged.too_much:
        less = "the host has too few free CPUs or too little memory"
        yield Prose([(), plain(f"No placement fits: {less}. Reduce the domain.")])
    elif lines:
        name = quote(domain.name) if domain.name.isprintable() else "NAME"
        where = f"virsh edit {name}; replace its own elements, and add the controllers"
        if domain.form != "libvirt":
            where = f"as libvirt would have it; {domain.form} has options of its own"
        yield Code(plain(f"XML to use ({where}):", "strong"), lines)
        if judged.suited and judged.suited.device_cells and not has_expanders(domain):
            yield Prose([plain(
                f"The machine type {shown_name(domain.machine or '')} has no pxb-pcie. With q35, "
                "the guest would know which node is near each device."
            )])  # fmt: skip
    elif judged.suited is not None or judged.is_best:
        best = "The domain's placement is already the best that fits"
        yield Prose([(), plain(f"{best}: no XML fixes the findings above.")])


def domain_document(report: DomainReport) -> str:
    return json_document(
        {
            "schema": "linkgauge.vm/1",
            "simulated": report.simulated is not None,
            "role": report.decision.role,
            "reasons": report.decision.reasons,
            "domain": report.domain and {"name": report.domain.name, "uuid": report.domain.uuid},
            "running": report.running,
            "defined": report.defined,
            "findings": report.judged.findings,
            "counts": Counter(finding.severity for finding in report.judged.findings),
            "xml": report.elements,
            "message": report.message,
        }
    )


# The elements of a domain as a placement has them: whole, to paste in place of the domain's own.


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

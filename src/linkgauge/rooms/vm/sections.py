"""Shows the findings on a virtual machine, and the XML to use."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import chain, count
from shlex import quote
from xml.etree.ElementTree import Element, indent, tostring

import msgspec
from defusedxml.ElementTree import fromstring
from rich.console import RenderableType

from linkgauge.judge.outcome import outcome_of_setup
from linkgauge.machine.tree import ranges
from linkgauge.model.grouped import grouped
from linkgauge.model.hardware.machine import Machine
from linkgauge.report.blocks import Block, Code, Line, Problem, Prose, Span, cut, line, plain
from linkgauge.report.files import judged_document
from linkgauge.report.results import SIMULATED
from linkgauge.report.sections import findings
from linkgauge.report.words.remedies import steps

from .checks import DomainFindings
from .checks.comparison import Decision
from .checks.planner import Suited
from .domain import Domain, GuestNode, HostDevice
from .message import message
from .readers import SETTINGS

_LONGEST = 60
_HOW_TO_GET_ONE = (
    "virsh list --all",
    "virsh dumpxml NAME > NAME.xml  # of a running domain: its live definition",
    "linkgauge vm NAME.xml",
)


class DomainReport(msgspec.Struct, frozen=True, kw_only=True):
    """What `linkgauge vm` shows: without a `domain`, the `running` and `defined` domains' names."""

    machine: Machine
    decision: Decision
    domain: Domain | None = None
    judged: DomainFindings = DomainFindings()
    running: Sequence[str] = ()
    defined: Sequence[str] = ()

    @property
    def elements(self) -> tuple[str, ...]:
        domain, suited = self.domain, self.judged.suited
        vendor = self.machine.known.host.cpu_vendor
        return elements_of(domain, suited, vendor) if domain and suited else ()

    @property
    def settings(self) -> tuple[str, ...]:
        """Returns the placement as settings of the system that writes the XML, such as KubeVirt."""
        domain, suited = self.domain, self.judged.suited
        ask = SETTINGS.get(domain.form) if domain else None
        return tuple(ask(domain, suited)) if ask and domain and suited else ()

    @property
    def message(self) -> tuple[str, ...]:
        is_guest = self.decision.role == "guest"
        return message(self.judged.findings, self.domain) if is_guest else ()


def domain_blocks(report: DomainReport) -> Iterator[Block | RenderableType]:
    simulated = report.machine.simulated
    mark = [] if simulated is None else [line(SIMULATED, f" {simulated}")]
    yield Prose([*mark, _heading(report)])
    if report.domain is None and report.decision.role == "host":
        yield _how_to_get_one(report)
        return
    yield from findings.blocks(report.judged.findings, "vm")
    if lines := report.message:
        caption = "To send to the host's administrator; the cheapest changes come first:"
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
    if role == "neither":
        return line("domain ", name, ", by itself: this machine is neither its guest nor its host",
                    because)  # fmt: skip
    return line("domain ", name, f", compared with this machine as its {role}", because)


def shown_name(name: str) -> str:
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
        where = f"virsh edit {name}; replace its elements of the same names"
        where += ", and add the controllers" if "<controller" in "".join(lines) else ""
        if report.settings:
            asked = [text for setting in report.settings for text in setting.splitlines()]
            yield Code(plain(f"To ask {domain.form} for:", "strong"), asked)
            where = f"what that comes to; {domain.form} writes it anew at each start"
        elif domain.form != "libvirt":
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
    return judged_document(
        {
            "schema": "linkgauge.vm/1",
            "simulated": report.machine.simulated is not None,
            "role": report.decision.role,
            "reasons": report.decision.reasons,
            "domain": report.domain and {"name": report.domain.name, "uuid": report.domain.uuid},
            "running": report.running,
            "defined": report.defined,
            "counts": Counter(finding.severity for finding in report.judged.findings),
            "xml": report.elements,
            "settings": report.settings,
            "message": report.message,
        },
        *outcome_of_setup(report.judged.findings).answer,
    )


# The elements of a domain as a placement has them: whole, to paste in place of the domain's own.


_KIB = 1 << 10
_BUSES = 256


def elements_of(domain: Domain, suited: Suited, vendor: str | None = None) -> tuple[str, ...]:
    """Returns the XML elements that a placement changes. `vendor` is the host CPU's vendor."""
    made = (
        _vcpu(domain),
        _cputune(domain, suited),
        _numatune(suited),
        _memory_backing(domain, suited),
        _cpu(domain, suited, vendor),
    )
    texts = {element.tag: text_of(element) for element in made if element is not None}
    changed = (text for tag, text in texts.items() if text != text_of(_own(domain, tag)))
    return (*changed, *map(text_of, _devices(domain, suited)))


def text_of(element: Element) -> str:
    """Returns an element as indented XML. Escapes all characters but printable ASCII."""
    indent(element)
    element.tail = None
    text = tostring(element, encoding="us-ascii").decode()
    text = text.removeprefix("<?xml version='1.0' encoding='us-ascii'?>\n").replace(" />", "/>")
    return "".join(c if " " <= c <= "~" or c == "\n" else f"&#{ord(c)};" for c in text)


def _own(domain: Domain, tag: str) -> Element:
    return _parsed(domain.elements.get(tag, f"<{tag}/>"))


def _parsed(text: str) -> Element:
    element: Element = fromstring(text)
    return element


def _made(tag: str, attributes: dict[str, str], *inside: Element) -> Element:
    element = Element(tag, attributes)
    element.extend(inside)
    return element


def _without(element: Element, *tags: str) -> Element:
    for child in [child for child in element if child.tag in tags]:
        element.remove(child)
    return element


def _vcpu(domain: Domain) -> Element | None:
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
    if not suited.nodes:
        return None
    nodes = {*chain(*suited.nodes.values())}
    cells = [
        Element("memnode", cellid=str(cell), mode="strict", nodeset=ranges(at))
        for cell, at in suited.nodes.items()
        if len(suited.nodes) > 1
    ]
    return _made("numatune", {}, Element("memory", mode="strict", nodeset=ranges(nodes)), *cells)


def _memory_backing(domain: Domain, suited: Suited) -> Element | None:
    if suited.page_size is None:
        return None
    element = _without(_own(domain, "memoryBacking"), "hugepages")
    page = Element("page", size=str(suited.page_size // _KIB), unit="KiB")
    element.insert(0, _made("hugepages", {}, page))
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
        behind = sum(child.tag in ("model", "vendor") for child in element)
        element.insert(behind, _parsed(str(topology)))
    adds = domain.hides_threads(vendor) and "topoext" not in domain.features
    if topology.threads > 1 and adds:
        element.append(Element("feature", policy="require", name="topoext"))
    if suited.cells and suited.cells != domain.cells:
        _without(element, "numa").append(_made("numa", {}, *map(_cell, suited.cells)))
    return element


def _cell(cell: GuestNode) -> Element:
    size = {"memory": str(cell.memory // _KIB), "unit": "KiB"}
    far = [Element("sibling", id=str(n), value=str(at)) for n, at in cell.distances.items()]
    inside = [_made("distances", {}, *far)] if far else []
    return _made("cell", {"id": str(cell.index), "cpus": ranges(cell.vcpus), **size}, *inside)


def _devices(domain: Domain, suited: Suited) -> Iterator[Element]:
    """Yields an expander per cell that gets cards, a root port per card, and its functions."""
    known = [one for one in domain.devices if one.source in suited.device_cells]
    home = {_slot(one): suited.device_cells[one.source] for one in known}
    misplaced = {_slot(one) for one in known if home[_slot(one)] != domain.cell_of(one)}
    if not misplaced or not has_expanders(domain):
        return
    cards = grouped((_slot(one), one) for one in domain.devices if _slot(one) in misplaced)
    at_cell = grouped((home[slot], card) for slot, card in cards.items())
    indexes = count(max((one.index for one in domain.controllers), default=0) + 1)
    numbers = [one.bus_number for one in domain.controllers if one.bus_number]
    next_bus = min(numbers, default=_BUSES)
    for cell in sorted(at_cell):
        expander = next(indexes)
        next_bus -= len(at_cell[cell]) + 1
        node = Element("node")
        node.text = str(cell)
        target = _made("target", {"busNr": str(next_bus)}, node)
        yield _controller(expander, "pcie-expander-bus", target)
        for place, card in enumerate(at_cell[cell]):
            index = next(indexes)
            yield _controller(
                index, "pcie-root-port", Element("address", _address(expander, place))
            )
            yield from (_moved(device, index, card) for device in card)


def _slot(device: HostDevice) -> str:
    return device.source.rpartition(".")[0]


def has_expanders(domain: Domain) -> bool:
    """Whether the machine type supports PCI expanders (pxb-pcie): QEMU's q35 and Arm's virt do."""
    machine = domain.machine or ""
    return "q35" in machine or machine.startswith("virt")


def _controller(index: int, model: str, inside: Element) -> Element:
    return _made("controller", {"type": "pci", "index": str(index), "model": model}, inside)


def _moved(device: HostDevice, bus: int, card: Sequence[HostDevice]) -> Element:
    """Returns a PCI function's XML with its new address. A card's first function becomes 0."""
    functions = {one.source: int(one.source[-1], 16) for one in card}
    function = functions[device.source] - min(functions.values())
    address = _address(bus, 0, function)
    if function == 0 and len(card) > 1:
        address["multifunction"] = "on"
    element = _without(_parsed(device.element), "address")
    element.append(Element("address", address))
    return element


def _address(bus: int, slot: int, function: int = 0) -> dict[str, str]:
    return {
        "type": "pci", "domain": "0x0000", "bus": f"{bus:#04x}", "slot": f"{slot:#04x}",
        "function": f"{function:#x}",
    }  # fmt: skip

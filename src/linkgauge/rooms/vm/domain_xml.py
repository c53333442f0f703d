"""Reads libvirt's XML of a domain, which is untrusted: defusedxml refuses document types and
entities, size and depth are limited, and a garbled number is an error that names its element."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import suppress
from itertools import islice
from pathlib import Path
from uuid import UUID
from xml.etree.ElementTree import Element, ParseError, tostring

from defusedxml.common import DefusedXmlException
from defusedxml.ElementTree import fromstring

from linkgauge.machine.given import read_given
from linkgauge.model.errors import InputError
from linkgauge.model.hardware.virtual import Cpus
from linkgauge.model.printable import printable

from . import xml_values as xml
from .domain import (
    MOST,
    BusAddress,
    Controller,
    CpuTopology,
    Domain,
    GuestNode,
    HostDevice,
    HugePages,
    MemoryPolicy,
    length,
    parse_cpu_set,
)
from .readers import owner_of, parser_of
from .refusals import refused

MOST_XML = 4 << 20
"""Bytes; a domain has some tens of thousands."""
_DEEPEST = 256
"""Elements within one another, as in libxml2, by which libvirt reads."""
STDIN = Path("-")
KEPT = ("vcpu", "cputune", "numatune", "memoryBacking", "cpu")
"""Elements of which the text is kept, beside those of host devices."""
_LISTS = ("cpuset", "nodeset", "cpus")
_MOST_LISTED = 4 << 20
_BITS = {"domain": 32, "bus": 8, "slot": 5, "function": 3}


def read_domain(path: Path) -> Domain:
    """Reads a domain from a file, or from stdin for `-`. Raises InputError if it has no domain."""
    if path == STDIN and sys.stdin.isatty():
        raise InputError("- is a terminal: pipe what `virsh dumpxml NAME` writes")
    try:
        content = read_given(Path("/dev/stdin") if path == STDIN else path, MOST_XML)
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}") from error
    text = content.decode(errors="replace").lstrip("\ufeff \t\r\n")
    parse = None if text.startswith("<") else parser_of(text)
    try:
        return parse_domain(content) if parse is None else parse(text)
    except InputError as error:
        raise InputError(f"{path}: {error}") from error


def parse_domain(content: bytes) -> Domain:
    try:
        root = fromstring(content, forbid_dtd=True)
    except DefusedXmlException as error:
        raise InputError(
            f"it has a document type or entities, which no domain has: {xml.HOW}"
        ) from error
    except (ParseError, ValueError, LookupError, RecursionError) as error:
        raise InputError(f"it is not XML ({_one_line(error)}): {xml.HOW}") from error
    _check_depth(root)
    if root.tag != "domain":
        raise InputError(f"its root element is {xml.short(root.tag)}, not 'domain': {xml.HOW}")
    _check_lists(root)
    return _domain(root)


def _check_depth(root: Element) -> None:
    level, depth = [root], 0
    while level:
        depth += 1
        if depth > _DEEPEST:
            raise InputError(f"its elements are nested more than {_DEEPEST} deep: {xml.HOW}")
        level = [child for element in level for child in element]


def _check_lists(root: Element) -> None:
    texts = (element.get(name) or "" for element in root.iter() for name in _LISTS)
    if sum(map(length, texts)) > _MOST_LISTED:
        raise InputError(f"it lists more than {_MOST_LISTED} CPUs and nodes in all: {xml.HOW}")


def _domain(root: Element) -> Domain:
    vcpu, policy = root.find("vcpu"), root.find("numatune/memory")
    most = xml.content(vcpu, xml.count) or 1
    cpuset = xml.attribute(vcpu, "cpuset", parse_cpu_set)
    by_numad = None if cpuset else xml.said(policy, "placement")
    system, topology = root.find("os/type"), root.find("cpu/topology")
    emulator = root.findall("cputune/emulatorpin")
    if len(emulator) > 1:
        raise InputError("it has two <emulatorpin>: keep one")
    return Domain(
        name=(root.findtext("name") or "").strip(),
        form=owner_of(root) or "libvirt",
        uuid=_uuid(root.findtext("uuid") or ""),
        kind=root.get("type", ""),
        running=root.get("id") is not None,
        arch=xml.said(system, "arch"),
        machine=xml.said(system, "machine"),
        vcpus=most,
        enabled=_enabled(root, vcpu, most),
        automatic=(xml.said(vcpu, "placement") or by_numad) == "auto",
        cpuset=cpuset,
        vcpu_pins=xml.keyed(root.iterfind("cputune/vcpupin"), "vcpu", _cpuset),
        emulator_pin=next(map(_cpuset, emulator), None),
        iothreads=_iothreads(root),
        iothread_pins=xml.keyed(root.iterfind("cputune/iothreadpin"), "iothread", _cpuset),
        memory=xml.size_of(root.find("memory")),
        current_memory=xml.size_of(root.find("currentMemory")),
        added_memory=_added(root.iterfind("devices/memory/target")),
        policy=None if policy is None else _policy(policy),
        cell_policies=xml.keyed(root.iterfind("numatune/memnode"), "cellid", _policy),
        topology=None if topology is None else _topology(topology),
        cpu=_cpu_model(root.find("cpu")),
        features={
            one.get("name", ""): one.get("policy", "require")
            for one in root.iterfind("cpu/feature")
        },
        iommu=xml.said(root.find("devices/iommu"), "model"),
        iommu_caches=xml.said(root.find("devices/iommu/driver"), "caching_mode") == "on",
        cells=_cells(root),
        huge_pages=tuple(_huge_pages(root)),
        controllers=tuple(map(_controller, root.iterfind("devices/controller[@type='pci']"))),
        devices=tuple(_host_devices(root)),
        mediated=len(root.findall("devices/hostdev[@type='mdev']/source/address")),
        elements={
            tag: tostring(found, encoding="unicode")
            for tag in KEPT
            if (found := root.find(tag)) is not None
        },
        refused=refused(root),
    )


def _cpuset(element: Element) -> Cpus:
    return xml.required(element, "cpuset", parse_cpu_set)


def _cpu_model(element: Element | None) -> str | None:
    mode = xml.said(element, "mode") or "custom"
    model = None if element is None else (element.findtext("model") or "").strip()
    return (model or None) if mode == "custom" else mode


def _enabled(root: Element, vcpu: Element | None, most: int) -> Cpus:
    marked = xml.keyed(root.iterfind("vcpus/vcpu"), "id", lambda one: one.get("enabled") != "no")
    if marked:
        return tuple(sorted(n for n, is_on in marked.items() if is_on and n < most))
    current = xml.attribute(vcpu, "current", xml.count) or most
    if current > most:
        raise InputError(f"<vcpu current='{current}'> is more than its {most} vCPUs")
    return tuple(range(current))


def _iothreads(root: Element) -> Cpus:
    wanted = xml.content(root.find("iothreads"), xml.number) or 0
    listed = set(xml.keyed(root.iterfind("iothreadids/iothread"), "id", lambda _: True))
    free = (one for one in range(1, MOST) if one not in listed)
    listed |= {*islice(free, max(0, min(wanted, MOST // 2) - len(listed)))}
    return tuple(sorted(listed))


def _added(targets: Iterable[Element]) -> dict[int | None, int]:
    found = Counter[int | None]()
    for one in targets:
        found[xml.content(one.find("node"), xml.number)] += xml.size_of(one.find("size")) or 0
    return found


def _policy(element: Element) -> MemoryPolicy:
    nodes = xml.attribute(element, "nodeset", parse_cpu_set)
    is_automatic = element.get("placement") == "auto"
    return MemoryPolicy(element.get("mode", "strict"), None if is_automatic else nodes)


def _topology(element: Element) -> CpuTopology:
    return CpuTopology(**xml.known(element, CpuTopology.__struct_fields__, xml.count))


def _cells(root: Element) -> tuple[GuestNode, ...]:
    """Returns the cells by number. A cell without a number gets its position as number."""
    elements = root.findall("cpu/numa/cell")
    for place, element in enumerate(elements):
        element.attrib.setdefault("id", str(place))
    found = xml.keyed(elements, "id", _cell)
    return tuple(found[index] for index in sorted(found))


def _cell(element: Element) -> GuestNode:
    siblings = element.iterfind("distances/sibling")
    return GuestNode(
        index=xml.required(element, "id", xml.number),
        vcpus=(element.get("cpus") and xml.attribute(element, "cpus", parse_cpu_set)) or (),
        memory=xml.attribute(element, "memory", xml.sized_in(element.get("unit"))) or 0,
        distances=xml.keyed(
            siblings, "id", lambda one: xml.attribute(one, "value", xml.number) or 0
        ),
    )


def _huge_pages(root: Element) -> Iterator[HugePages]:
    pages = root.findall("memoryBacking/hugepages/page")
    if not pages and root.find("memoryBacking/hugepages") is not None:
        yield HugePages()
    for page in pages:
        size = xml.attribute(page, "size", xml.sized_in(page.get("unit")))
        yield HugePages(size, xml.attribute(page, "nodeset", parse_cpu_set))


def _controller(element: Element) -> Controller:
    return Controller(
        index=xml.attribute(element, "index", xml.number) or 0,
        model=element.get("model", ""),
        address=_bus_address(element.find("address")),
        bus_number=xml.attribute(element.find("target"), "busNr", xml.register),
        cell=xml.content(element.find("target/node"), xml.number),
    )


def _host_devices(root: Element) -> Iterator[HostDevice]:
    """Yields passed-through PCI devices and network adapters, without those marked `unassigned`."""
    seen: set[str] = set()
    for form in ("devices/hostdev[@type='pci']", "devices/interface[@type='hostdev']"):
        for element in root.iterfind(form):
            source, address = element.find("source/address"), element.find("address")
            if xml.said(source, "type") == "usb" or xml.said(address, "type") == "unassigned":
                continue
            place = _bus_address(source)
            if place is None:
                raise InputError("the <source> of a host device has no bus and slot: " + xml.HOW)
            name = f"{place.domain:04x}:{place.bus:02x}:{place.slot:02x}.{place.function:x}"
            if name in seen:
                raise InputError(f"it passes {name} through twice: keep one")
            seen.add(name)
            text = tostring(element, encoding="unicode")
            yield HostDevice(name, _bus_address(address), element.get("managed") == "yes", text)


def _bus_address(element: Element | None) -> BusAddress | None:
    """Returns a PCI address, or None for other addresses. Missing parts are 0, as in libvirt."""
    if element is None or element.get("type", "pci") != "pci":
        return None
    parts = xml.known(element, BusAddress.__struct_fields__, xml.register)
    for name, value in parts.items():
        if value >> _BITS[name]:
            raise InputError(f"<address {name}='{value:#x}'> is out of range for PCI: {xml.HOW}")
    return BusAddress(**parts) if {"bus", "slot"} & parts.keys() else None


def _uuid(text: str) -> str | None:
    with suppress(ValueError):
        return str(UUID("".join(text.split())))
    return None


def _one_line(error: Exception) -> str:
    return printable(" ".join(str(error).split()))[:120]

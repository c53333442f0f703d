"""Reads a libvirt domain (`virsh dumpxml`): what it says of CPUs, memory and PCI devices.

The file is untrusted: defusedxml refuses document types and entities, size and depth are limited,
and a number that libvirt would not take is an error that names its element.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar
from xml.etree.ElementTree import Element, ParseError, tostring

from defusedxml.common import DefusedXmlException
from defusedxml.ElementTree import fromstring

from linkgauge.machine.given import read_given
from linkgauge.model.errors import InputError
from linkgauge.model.printable import printable

from .domain import (
    MOST,
    AddedMemory,
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
    scale,
)
from .readers import reader_of
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
_HOW = "give what `virsh dumpxml NAME` writes"

Value = TypeVar("Value")


def read_domain(path: Path) -> Domain:
    """The domain in a file, `-` for stdin. Raises InputError, in one line, where there is none."""
    if path == STDIN and sys.stdin.isatty():
        raise InputError("- is a terminal: pipe what `virsh dumpxml NAME` writes")
    try:
        content = read_given(Path("/dev/stdin") if path == STDIN else path, MOST_XML)
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}") from error
    text = content.decode(errors="replace").lstrip("\ufeff \t\r\n")
    reader = None if text.startswith("<") else reader_of(text)
    try:
        return parse_domain(content) if reader is None else reader.parse(text)
    except InputError as error:
        raise InputError(f"{path}: {error}") from error


def parse_domain(content: bytes) -> Domain:
    """The domain that XML describes. Raises InputError."""
    try:
        root = fromstring(content, forbid_dtd=True)
    except DefusedXmlException as error:
        raise InputError(
            f"it has a document type or entities, which no domain has: {_HOW}"
        ) from error
    except (ParseError, ValueError, LookupError, RecursionError) as error:
        raise InputError(f"it is not XML ({_one_line(error)}): {_HOW}") from error
    _check_depth(root)
    if root.tag != "domain":
        raise InputError(f"its root element is {_short(root.tag)}, not 'domain': {_HOW}")
    _check_lists(root)
    return _domain(root)


def _check_depth(root: Element) -> None:
    level, depth = [root], 0
    while level:
        depth += 1
        if depth > _DEEPEST:
            raise InputError(f"its elements are nested more than {_DEEPEST} deep: {_HOW}")
        level = [child for element in level for child in element]


def _check_lists(root: Element) -> None:
    """So that long lists of CPUs in many places do not fill the memory."""
    texts = (element.get(name) or "" for element in root.iter() for name in _LISTS)
    if sum(map(length, texts)) > _MOST_LISTED:
        raise InputError(f"it lists more than {_MOST_LISTED} CPUs and nodes in all: {_HOW}")


def _domain(root: Element) -> Domain:
    vcpu = root.find("vcpu")
    most = 1 if vcpu is None else _text(vcpu, _vcpus)
    placement, cpuset = _named(vcpu, "placement"), _attribute(vcpu, "cpuset", parse_cpu_set)
    policy = root.find("numatune/memory")
    by_numad = placement or (_named(policy, "placement") if cpuset is None else None)
    pins = root.find("cputune")
    system = root.find("os/type")
    return Domain(
        name=(root.findtext("name") or "").strip(),
        uuid=_uuid(root.findtext("uuid")),
        kind=root.get("type", ""),
        running=root.get("id") is not None,
        arch=_named(system, "arch"),
        machine=_named(system, "machine"),
        vcpus=most,
        enabled=_enabled(root, vcpu, most),
        automatic=by_numad == "auto",
        cpuset=cpuset,
        vcpu_pins=_pins(pins, "vcpupin", "vcpu"),
        emulator_pin=_pins(pins, "emulatorpin", None).get(0),
        iothreads=_iothreads(root),
        iothread_pins=_pins(pins, "iothreadpin", "iothread"),
        memory=_size_of(root, "memory"),
        current_memory=_size_of(root, "currentMemory"),
        added_memory=tuple(_added(element) for element in root.iterfind("devices/memory")),
        policy=None if policy is None else _policy(policy),
        cell_policies=_by(root, "numatune/memnode", "cellid", _policy),
        topology=_topology(root.find("cpu/topology")),
        cpu=_cpu_model(root.find("cpu")),
        features={
            element.get("name", ""): element.get("policy", "require")
            for element in root.iterfind("cpu/feature")
        },
        iommu=_named(root.find("devices/iommu"), "model"),
        cells=_cells(root),
        huge_pages=tuple(_huge_pages(root)),
        controllers=tuple(
            _controller(element) for element in root.iterfind("devices/controller[@type='pci']")
        ),
        devices=tuple(_host_devices(root)),
        mediated=tuple(
            element.get("uuid", "")
            for element in root.iterfind("devices/hostdev[@type='mdev']/source/address")
        ),
        elements={
            tag: tostring(element, encoding="unicode")
            for tag in KEPT
            if (element := root.find(tag)) is not None
        },
        refused=refused(root),
    )


def _cpu_model(element: Element | None) -> str | None:
    mode = _named(element, "mode") or "custom"
    model = None if element is None else (element.findtext("model") or "").strip()
    return (model or None) if mode == "custom" else mode


def _enabled(root: Element, vcpu: Element | None, most: int) -> tuple[int, ...]:
    """The vCPUs that are there at the start: those marked so, else the first ones."""
    marked = _by(root, "vcpus/vcpu", "id", lambda element: element.get("enabled") != "no")
    if marked:
        return tuple(sorted(n for n, is_on in marked.items() if is_on and n < most))
    current = _attribute(vcpu, "current", _vcpus) or most
    if current > most:
        raise InputError(f"<vcpu current='{current}'> is more than its {most} vCPUs")
    return tuple(range(current))


def _pins(pins: Element | None, tag: str, key: str | None) -> dict[int, tuple[int, ...]]:
    """CPUs by the number that `key` has; of an element without a number, under 0."""
    found: dict[int, tuple[int, ...]] = {}
    for element in () if pins is None else pins.iterfind(tag):
        number = _attribute(element, key, _number) if key else 0
        cpus = _attribute(element, "cpuset", parse_cpu_set)
        if number is None or cpus is None:
            missing = key if number is None else "cpuset"
            raise InputError(f"<{tag}> has no {missing}: {_HOW}")
        if number in found:
            raise InputError(f"it has two <{tag}>{f' for {key} {number}' if key else ''}: keep one")
        found[number] = cpus
    return found


def _iothreads(root: Element) -> tuple[int, ...]:
    """Their numbers: those listed, filled up from 1 to as many as there are."""
    element = root.find("iothreads")
    count = 0 if element is None else _text(element, _number)
    listed = set(_by(root, "iothreadids/iothread", "id", lambda _: True))
    free = (number for number in range(1, MOST) if number not in listed)
    while len(listed) < min(count, MOST // 2):
        listed.add(next(free))
    return tuple(sorted(listed))


def _policy(element: Element) -> MemoryPolicy:
    nodes = _attribute(element, "nodeset", parse_cpu_set)
    if element.get("placement") == "auto":
        nodes = None
    return MemoryPolicy(element.get("mode", "strict"), nodes)


def _topology(element: Element | None) -> CpuTopology | None:
    if element is None:
        return None
    parts = {name: _attribute(element, name, _vcpus) for name in CpuTopology.__struct_fields__}
    return CpuTopology(**{name: 1 if count is None else count for name, count in parts.items()})


def _cells(root: Element) -> tuple[GuestNode, ...]:
    """The cells; one without a number has its place as such."""
    found: dict[int, GuestNode] = {}
    for place, element in enumerate(root.iterfind("cpu/numa/cell")):
        index = _attribute(element, "id", _number)
        index = place if index is None else index
        if index in found:
            raise InputError(f"two <cell> have the number {index}: give each its own")
        found[index] = GuestNode(
            index=index,
            vcpus=(_attribute(element, "cpus", parse_cpu_set) or ()) if element.get("cpus") else (),
            memory=_attribute(element, "memory", _integer(element.get("unit"))) or 0,
            distances=_by(element, "distances/sibling", "id", _distance),
        )
    return tuple(found[index] for index in sorted(found))


def _distance(element: Element) -> int:
    return _attribute(element, "value", _number) or 0


def _huge_pages(root: Element) -> Iterator[HugePages]:
    element = root.find("memoryBacking/hugepages")
    if element is None:
        return
    pages = element.findall("page")
    if not pages:
        yield HugePages()
    for page in pages:
        size = _attribute(page, "size", _integer(page.get("unit")))
        yield HugePages(size, _attribute(page, "nodeset", parse_cpu_set))


def _added(element: Element) -> AddedMemory:
    node = element.find("target/node")
    cell = None if node is None else _text(node, _number)
    return AddedMemory(cell, _size_of(element, "target/size") or 0)


def _controller(element: Element) -> Controller:
    target, node = element.find("target"), element.find("target/node")
    return Controller(
        index=_attribute(element, "index", _number) or 0,
        model=element.get("model", ""),
        address=_bus_address(element.find("address")),
        bus_number=_attribute(target, "busNr", _register),
        cell=None if node is None else _text(node, _number),
    )


def _host_devices(root: Element) -> Iterator[HostDevice]:
    """PCI functions that are passed through, network adapters among them; not those of which the
    address is `unassigned`: the guest does not get them."""
    seen: set[str] = set()
    for form in ("devices/hostdev[@type='pci']", "devices/interface[@type='hostdev']"):
        for element in root.iterfind(form):
            source, address = element.find("source/address"), element.find("address")
            if _named(source, "type") == "usb" or _named(address, "type") == "unassigned":
                continue
            place = _bus_address(source)
            if place is None:
                raise InputError("the <source> of a host device has no bus and slot: " + _HOW)
            name = f"{place.domain:04x}:{place.bus:02x}:{place.slot:02x}.{place.function:x}"
            if name in seen:
                raise InputError(f"it passes {name} through twice: keep one")
            seen.add(name)
            text = tostring(element, encoding="unicode")
            yield HostDevice(name, _bus_address(address), element.get("managed") == "yes", text)


def _bus_address(element: Element | None) -> BusAddress | None:
    """A PCI address; missing parts are 0, as for libvirt. None if it is of another kind."""
    if element is None or element.get("type", "pci") != "pci":
        return None
    parts = {name: _attribute(element, name, _register) for name in BusAddress.__struct_fields__}
    if parts["bus"] is None and parts["slot"] is None:
        return None
    limits = {"domain": 1 << 32, "bus": 1 << 8, "slot": 1 << 5, "function": 1 << 3}
    for name, value in parts.items():
        if value is not None and value >= limits[name]:
            raise InputError(f"<address {name}='{value:#x}'> is out of range for PCI: {_HOW}")
    return BusAddress(**{name: value or 0 for name, value in parts.items()})


def _by(root: Element, form: str, key: str, read: Callable[[Element], Value]) -> dict[int, Value]:
    """Elements by the number that `key` has."""
    found = {}
    for element in root.iterfind(form):
        number = _attribute(element, key, _number)
        if number is not None:
            found[number] = read(element)
    return found


def _size_of(root: Element, form: str) -> int | None:
    """Bytes; rounded up to a kibibyte, as libvirt does."""
    element = root.find(form)
    return (
        None
        if element is None
        else -(-_text(element, _integer(element.get("unit"))) // 1024) * 1024
    )


def _integer(unit: str | None) -> Callable[[str], int]:
    """Reads a size in this unit (`KiB` if there is none), in bytes."""
    unit_size = scale(unit or "KiB")

    def read(text: str) -> int:
        return _number(text, digits=20) * unit_size

    return read


def _attribute(element: Element | None, name: str, read: Callable[[str], Value]) -> Value | None:
    """The value of an attribute; None if it is missing. Raises InputError if it is garbled."""
    text = None if element is None else element.get(name)
    if element is None or text is None:
        return None
    return _tried(f"<{element.tag} {name}={_short(text)}>", text, read)


def _text(element: Element, read: Callable[[str], Value]) -> Value:
    text = element.text or ""
    return _tried(f"<{element.tag}> says {_short(text.strip())}", text, read)


def _tried(what: str, text: str, read: Callable[[str], Value]) -> Value:
    try:
        return read(text)
    except ValueError as error:
        raise InputError(f"{what}: {error}") from error


def _number(text: str, digits: int = 9) -> int:
    if not re.fullmatch(rf"\s*[0-9]{{1,{digits}}}\s*", text, re.ASCII):
        raise ValueError(f"give a number of at most {digits} digits that is not negative")
    return int(text)


def _vcpus(text: str) -> int:
    number = _number(text)
    if not 1 <= number <= MOST:
        raise ValueError(f"give a number from 1 to {MOST}")
    return number


def _register(text: str) -> int:
    """A number as addresses have it: 0x1b, 27."""
    if not re.fullmatch(r"\s*(?:0[xX][0-9a-fA-F]{1,8}|[0-9]{1,9})\s*", text, re.ASCII):
        raise ValueError("give a number such as 0x1b or 27")
    return int(text, 16 if "x" in text.lower() else 10)


def _named(element: Element | None, name: str) -> str | None:
    return None if element is None else element.get(name)


def _uuid(text: str | None) -> str | None:
    """In lower case, with dashes; None if it is no UUID."""
    digits = re.sub("[-\\s]", "", text or "").lower()
    if not re.fullmatch("[0-9a-f]{32}", digits):
        return None
    ends = (8, 12, 16, 20, 32)
    return "-".join(digits[start:end] for start, end in zip((0, *ends), ends, strict=False))


def _short(text: str) -> str:
    return repr(text if len(text) <= 40 else f"{text[:40]}…")


def _one_line(error: Exception) -> str:
    return printable(" ".join(str(error).split()))[:120]

"""What hwloc's lstopo states of a captured machine, read from its XML or its `-v` text alone."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from xml.etree import ElementTree as ET

_UNITS = {"KiB": 10, "MiB": 20, "GiB": 30, "TiB": 40}
_CACHE = re.compile(r"L([1-5])([di]?)Cache")


@dataclass
class Stated:
    """`cores` are the CPUs of each; `nodes` by number: bytes, the unit that they are rounded to,
    and kind; `node_cpus` of XML only. `caches` are (level, kind, bytes, how many CPUs share one),
    `pci` (class, vendor, device) by address."""

    cpus: set[int] = field(default_factory=set)
    cores: list[int] = field(default_factory=list)
    packages: int = 0
    nodes: dict[int, tuple[int, int, str | None]] = field(default_factory=dict)
    node_cpus: dict[int, set[int]] = field(default_factory=dict)
    caches: set[tuple[int, str, int, int]] = field(default_factory=set)
    distances: dict[int, tuple[int, ...]] = field(default_factory=dict)
    pci: dict[str, tuple[int, int, int]] = field(default_factory=dict)
    infos: dict[str, str] = field(default_factory=dict)


def bits(mask: str) -> set[int]:
    """Numbers of a set as hwloc writes it: `0x00000003,0x00000001`."""
    words = [int(word or "0", 16) for word in mask.replace("0xf...f", "").split(",")]
    value = 0
    for word in words:
        value = value << 32 | word
    return {bit for bit in range(value.bit_length()) if value >> bit & 1}


def of_xml(text: str) -> Stated:
    root, found = ET.fromstring(text), Stated()  # a test's own data
    for each in root.iter("object"):
        _object(found, each)
    for each in root.iter("info"):
        found.infos.setdefault(each.get("name") or "", each.get("value") or "")
    for each in root.iter("distances2"):
        if each.get("type") == "NUMANode":
            names = [int(n) for tag in each.iter("indexes") for n in (tag.text or "").split()]
            values = [int(n) for tag in each.iter("u64values") for n in (tag.text or "").split()]
            _square(found, names, values)
    return found


def _object(found: Stated, each: ET.Element) -> None:
    kind, number = each.get("type") or "", int(each.get("os_index") or -1)
    cpus = bits(each.get("cpuset") or "0x0")
    if kind == "PU":
        found.cpus.add(number)
    elif kind == "Core":
        found.cores.append(len(cpus))
    elif kind == "Package":
        found.packages += 1
    elif kind == "NUMANode":
        found.nodes[number] = (int(each.get("local_memory") or 0), 1, each.get("subtype"))
        found.node_cpus[number] = cpus
    elif re.fullmatch("L[1-5]i?Cache", kind):
        name = ("unified", "data", "instruction")[int(each.get("cache_type") or 0)]
        level = int(each.get("depth") or 0)
        found.caches.add((level, name, int(each.get("cache_size") or 0), len(cpus)))
    elif pci := re.match(r"(\w+) \[(\w+):(\w+)\]", each.get("pci_type") or ""):
        busid = each.get("pci_busid") or ""
        found.pci[busid] = (int(pci[1], 16), int(pci[2], 16), int(pci[3], 16))


def of_text(text: str) -> Stated:
    """Of objects one below another: the CPUs of an object are the PUs below it."""
    found, above = Stated(), []
    nodes: dict[int, int] = {}
    shared: list[tuple[str, str, set[int]]] = []
    for line in text.partition("\ndepth 0:")[0].splitlines():
        each = re.match(r"( *)([A-Za-z0-9]+)(?:\[[\w,]+\])?(?:\((\w+)\))? L#(\d+) ?(.*)", line)
        if not each:
            continue
        indent, kind, subtype, logical, rest = each.groups()
        above = [(depth, cpus) for depth, cpus in above if depth < len(indent)]
        above.append((len(indent), set()))
        shared.append((kind, rest, above[-1][1]))
        number = re.match(r"\(P#(\d+)", rest)
        if kind == "PU" and number:
            for _, cpus in above:
                cpus.add(int(number[1]))
        elif kind == "NUMANode" and number:
            nodes[int(logical)] = int(number[1])
            found.nodes[int(number[1])] = (*_size(rest, "local"), subtype)
    found.cpus = {cpu for kind, _, cpus in shared for cpu in cpus if kind == "PU"}
    found.cores = [len(cpus) for kind, _, cpus in shared if kind == "Core"]
    found.packages = sum(kind == "Package" for kind, _, _ in shared)
    found.infos = dict(re.findall(r'(CPUModel)="([^"]*)"', text))
    for kind, rest, cpus in shared:
        if cache := _CACHE.fullmatch(kind):
            name = {"d": "data", "i": "instruction", "": "unified"}[cache[2]]
            found.caches.add((int(cache[1]), name, _size(rest, "size")[0], len(cpus)))
        elif pci := re.search(r"busid=(\S+) id=(\w+):(\w+) class=(\w+)", rest):
            found.pci[pci[1]] = (int(pci[4], 16), int(pci[2], 16), int(pci[3], 16))
    matrix = re.search(
        r"name NUMALatency.*\n index +([\d ]+)\n((?: +\d+(?: +\d+)+\n)+)", text + "\n"
    )
    if matrix:
        order = [nodes[int(n)] for n in matrix[1].split()]
        rows = (row.split()[1:] for row in matrix[2].splitlines())
        _square(found, order, [int(n) for row in rows for n in row])
    return found


def _size(text: str, name: str) -> tuple[int, int]:
    """Bytes, and the unit that they are rounded to."""
    size = re.search(rf"\b{name}=(\d+)(\w+)", text)
    unit = 1 << _UNITS[size[2]] if size else 1
    return (int(size[1]) * unit if size else 0), unit


def _square(found: Stated, names: list[int], values: list[int]) -> None:
    order = sorted(range(len(names)), key=names.__getitem__)
    found.distances = {
        names[row]: tuple(values[row * len(names) + column] for column in order) for row in order
    }

"""Reads lstopo's XML, lstopo's text on a console, which nests the same objects, and NCCL's or a
cloud's topology file, which gives only the classes of cards."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from typing import Any
from xml.etree.ElementTree import Element, SubElement

from linkgauge.model.hardware.pcie import SPEEDS, link_rate

from ..facts import Bridge, ReportedGpu, ReportedNic, ReportedNode
from ..lines import DECIMAL, address_of, index_of, number_of
from ..products import model_of
from ..scan import TextScan
from .host import count_of_mask

_GPUS, _RDMA_CLASSES = ("03", "0b", "12"), ("0207", "0200", "0c06")
_VGA_OF_BOARDS = ("102b", "1a03")
"""Vendors of displays of the host itself: Matrox and ASPEED."""
_DEEPEST = 64
_USUAL = 16
"""The lanes of the slots of accelerators and of their adapters."""


# The XML.


def _lstopo(seen: TextScan) -> None:
    if (root := seen.xml("topology")) is not None:
        _note(seen, root)


def _note(seen: TextScan, root: Element) -> None:
    nodes, gpus, nics, ports = dict[int, ReportedNode](), list[ReportedGpu](), {}, set[str]()
    for one in root.iter("object"):
        index = index_of(one.get("os_index", ""))
        if one.get("type") == "NUMANode" and index is not None:
            memory = one.get("local_memory", "")
            is_size = memory.isdecimal() and len(memory) < 16
            cpus = count_of_mask(one.get("cpuset", ""))
            nodes[index] = ReportedNode(cpus, int(memory) if is_size else None)
    for one, at in _below(root):
        match = re.match(r"([0-9a-f]{4}) \[([0-9a-f]{4}):([0-9a-f]{4})\]", one.get("pci_type", ""))
        kind, vendor, device = match.groups() if match else ("", "", "")
        inside = (own for own in one.findall("object") if own.get("osdev_type") == "3")
        if kind[:2] in _GPUS and vendor not in _VGA_OF_BOARDS:
            gpus.append(ReportedGpu(_model(one, device), **at))
        for name in [own.get("name") for own in inside][:1] if kind in _RDMA_CLASSES else ():
            nics[name] = ReportedNic(_model(one, device), **at, ethernet=kind == "0200")
        ports |= {*at["above"]}
    infos = {one.get("name"): one.get("value") for one in root.iter("info")}
    seen.gpus |= dict(enumerate(sorted(gpus, key=lambda gpu: gpu.pci or "")))
    seen.facts(
        nodes=nodes, cpu_model=infos.get("CPUModel"), architecture=infos.get("Architecture"),
        nics=nics, adapters=len(nics) or None,
        bridges={port: Bridge(is_switch=True) for port in sorted(ports)},
    )  # fmt: skip


def _below(
    here: Element, above: tuple[str, ...] = (), node: int | None = None, depth: int = 0
) -> Iterator[tuple[Element, dict[str, Any]]]:
    own = [one for one in here.findall("object") if one.get("type") == "NUMANode"]
    if here.get("type") == "NUMANode":
        own = [here]
    if len(own) == 1:
        node = index_of(own[0].get("os_index", ""))
    for one in here.findall("object") if depth <= _DEEPEST else ():
        named, inside = one.get("pci_busid", ""), above
        address = address_of(named) or (named if named.startswith("bridge ") else None)
        if one.get("type") == "PCIDev" and address is not None:
            rate = (number_of(one.get("pci_link_speed", "")) or 0.0) * 1e9
            speeds = (s for s in SPEEDS if abs(link_rate(s, _USUAL) - rate) < 0.01 * rate)
            link = {"max_speed": next(speeds, None), "width": _USUAL}
            link = link if link["max_speed"] else {}
            yield one, {"pci": address, "node": node, "above": above, **link}
        elif one.get("type") == "Bridge" and address is not None:
            inside = (address, *above)
        yield from _below(one, inside, node, depth + 1)


def _model(one: Element, device: str) -> str | None:
    infos = {info.get("name"): info.get("value") for info in one.findall("info")}
    model = infos.get("PCIDevice")
    bracket = re.search(r"\[(.{2,60})\]$", model or "")
    return model_of(device) or (bracket[1] if bracket else model)


# The text on a console.

_OBJECT = (
    r"(?P<depth>\s*)(?:(?P<type>Package|NUMANode|Group0|Die) L#\d+|HostBridge\b"
    r"|(?P<bridge>PCIBridge)\b"
    r"|PCI (?P<pci>[0-9a-f]{2,8}:[0-9a-f]{2}(?::[0-9a-f]{2})?\.[0-7]) \((?P<kind>[^)]{1,40})\)"
    r"|OpenFabrics(?: L#\d+)? \"(?P<rdma>\S{1,40})\""
    r"|(?P<gpu>CoProc\S*|GPU\S*)(?: L#\d+)? \"(?:cuda|nvml|opencl|rsmi|renderD|ze)\S{0,20}\")"
    r"(?:.*?P#(?P<node>\d{1,3})(?: (?P<memory>\d{1,6})(?P<unit>MB|GB))?)?"
)
_CPUS = (
    r"\s*(?:L\d[di]?(?:Cache)? L#|Core L#|PU L#|Net\b|Block\b|GPU\b|CoProc\b|DMA\b|Misc\b|PCI\b)"
    r"|Machine \(.{1,40}\)"
)
_CLASSES = {"3D": "0302", "Display": "0380", "ProcessingAccelerator": "1200",
            "InfiniBand": "0207", "Ethernet": "0200"}  # fmt: skip


def _console(seen: TextScan) -> None:
    """Converts console text to the objects of the XML. Bridges get line numbers as addresses."""
    stack = [(-1, Element("topology"))]
    for number, own, _ in seen.marks(_OBJECT, _CPUS):
        if "depth" not in own:
            continue
        depth = len(own["depth"])
        stack = [one for one in stack if one[0] < depth]
        one = SubElement(stack[-1][1], "object", type=own.get("type", ""))
        if "node" in own:
            size = int(own.get("memory", 0)) * (1 << (30 if own.get("unit") == "GB" else 20))
            one.attrib |= {"os_index": own["node"], "local_memory": str(size) if size else ""}
        if "bridge" in own:
            one.attrib |= {"type": "Bridge", "pci_busid": f"bridge {number}"}
        if "pci" in own:
            address = own["pci"] if own["pci"].count(":") == 2 else f"0000:{own['pci']}"
            kind = f"{_CLASSES.get(own['kind'], '')} [0000:0000]"
            one.attrib |= {"type": "PCIDev", "pci_busid": address, "pci_type": kind}
        if "rdma" in own:
            one.attrib |= {"osdev_type": "3", "name": own["rdma"]}
        above = stack[-1][1]
        if "gpu" in own and above.get("pci_type", "")[:1] == " ":  # a VGA that computes
            above.set("pci_type", "0300 [0000:0000]")
        stack.append((depth, one))
    _note(seen, stack[0][1])


_SPEED = re.compile(rf"({DECIMAL}) GT/s")
_LINK_RATE = {"60": 18, "61": 18, "70": 25, "80": 25, "86": 14.0625, "90": 25, "100": 50}
"""The rate of an NVLink one way in GB/s, by the number of the architecture."""
_SWITCH = "0x068000"
_NCCL_GPUS, _ADAPTERS, _BARE = ("0x0300", "0x0302", "0x1200"), ("0x0200", "0x0207"), Element("gpu")


def _topology(seen: TextScan) -> None:
    root = seen.xml("system")
    if root is None or root.get("version") is None:
        return
    cpus = [(index_of(cpu.get("numaid", "0")), cpu) for cpu in root.iter("cpu")]
    links, bridges = dict[int, list[tuple[str, int]]](), dict[str, Bridge]()
    nics, bare = dict[str, ReportedNic](), next(root.iter("gpu"), None) is None
    for node, cpu in cpus:
        for pci, above in _pci_below(cpu, ()):
            bridges |= {address: Bridge(is_switch=True) for address in above}
            kind = (pci.get("class") or "")[:6]
            if kind in _ADAPTERS or pci.find("nic/net") is not None:
                nics |= _nic(pci, _card(pci, node, above))
            cards = [_BARE] if bare and kind in _NCCL_GPUS else pci.findall("gpu")
            for gpu in cards:
                index = len(seen.gpus) if bare else index_of(gpu.get("dev", ""))
                if index is not None:
                    rate = _LINK_RATE.get(gpu.get("sm", "")) if gpu.findall("nvlink") else None
                    seen.gpus[index] = ReportedGpu(
                        model_of(pci.get("device") or ""), **_card(pci, node, above),
                        link_rate=rate and rate * 1e9,
                    )  # fmt: skip
                    links[index] = [*map(_target, (*gpu.findall("nvlink"), *gpu.findall("xgmi")))]
    seen.facts(
        joins=_joins(seen.gpus, links), bridges=bridges, adapters=len(nics) or None, nics=nics,
        nodes={n: ReportedNode(count_of_mask(cpu.get("affinity", "")))
               for n, cpu in cpus if n is not None},
        architecture=next(filter(None, (cpu.get("arch") for _, cpu in cpus)), None),
    )  # fmt: skip


def _pci_below(one: Element, above: tuple[str, ...]) -> Iterator[tuple[Element, tuple[str, ...]]]:
    for pci in one.findall("pci") if len(above) <= _DEEPEST else ():
        yield pci, above
        yield from _pci_below(pci, ((pci.get("busid") or "").lower(), *above))


def _joins(
    gpus: Mapping[int, ReportedGpu], links: Mapping[int, Sequence[tuple[str, int]]]
) -> dict[tuple[int, int], str]:
    at = {gpu.pci: index for index, gpu in gpus.items()}
    counts = {index: sum(count for _, count in some) for index, some in links.items()}
    through = [index for index, some in links.items() if any(to not in at for to, _ in some)]
    joins = {
        (index, at[to]): f"NV{count}"
        for index, some in links.items()
        for to, count in some
        if at.get(to, -1) > index
    }
    joins |= {(a, b): f"NV{min(counts[a], counts[b])}" for a, b in combinations(through, 2)}
    pairs = combinations(sorted(gpus), 2)
    return joins or {(a, b): _way(gpus[a], gpus[b]) for a, b in pairs}


def _way(one: ReportedGpu, other: ReportedGpu) -> str:
    if set(one.above) & set(other.above):
        return "PIX"
    return "NODE" if one.node == other.node else "SYS"


def _card(pci: Element, node: int | None, above: tuple[str, ...]) -> dict[str, Any]:
    speed, address = _SPEED.match(pci.get("link_speed", "")), address_of(pci.get("busid", ""))
    width = index_of(pci.get("link_width", "")) or None
    most = float(speed[1]) if speed else None
    return {"pci": address, "node": node, "max_speed": most, "width": width, "above": above}


def _nic(pci: Element, card: dict[str, Any]) -> dict[str, ReportedNic]:
    nets = pci.findall("nic/net")
    name = next((net.get("name") for net in nets if net.get("name")), None) or card["pci"]
    rate = max((index_of(net.get("speed", "")) or 0 for net in nets), default=0) * 1e6 / 8
    is_ethernet, ports = (pci.get("class") or "").startswith("0x0200"), min(max(len(nets), 1), 8)
    nic = ReportedNic(**card, ports=ports, rate=rate or None, ethernet=is_ethernet)
    return {name: nic} if name else {}


def _target(link: Element) -> tuple[str, int]:
    count = index_of(link.get("count", "1"))
    is_switch = link.get("tclass") == _SWITCH
    target = "switch" if is_switch else (link.get("target") or "").lower()
    return target, 1 if count is None else min(count, 64)


READERS = {_lstopo: ("<topology",), _console: ("Machine (",),
    _topology: ("<system",)}  # fmt: skip

"""Reads NCCL_TOPO_DUMP_FILE, or a cloud's topology file, which only tells the classes of cards."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from typing import Any
from xml.etree.ElementTree import Element

from ..facts import Bridge, ReportedGpu, ReportedNic, ReportedNode
from ..lines import DECIMAL, address_of, index_of
from ..products import model_of
from ..scan import TextScan
from .host import count_of_mask

_SPEED = re.compile(rf"({DECIMAL}) GT/s")
_LINK_RATE = {"60": 18, "61": 18, "70": 25, "80": 25, "86": 14.0625, "90": 25, "100": 50}
"""The rate of an NVLink one way in GB/s, by the number of the architecture."""
_SWITCH = "0x068000"
_GPUS, _ADAPTERS, _BARE = ("0x0300", "0x0302", "0x1200"), ("0x0200", "0x0207"), Element("gpu")
_DEEPEST = 32


def _topology(seen: TextScan) -> None:
    root = seen.xml("system")
    if root is None or root.get("version") is None:
        return
    cpus = [(index_of(cpu.get("numaid", "0")), cpu) for cpu in root.iter("cpu")]
    links, bridges = dict[int, list[tuple[str, int]]](), dict[str, Bridge]()
    nics, bare = dict[str, ReportedNic](), next(root.iter("gpu"), None) is None
    for node, cpu in cpus:
        for pci, above in _below(cpu, ()):
            bridges |= {address: Bridge(is_switch=True) for address in above}
            kind = (pci.get("class") or "")[:6]
            if kind in _ADAPTERS or pci.find("nic/net") is not None:
                nics |= _nic(pci, _card(pci, node, above))
            cards = [_BARE] if bare and kind in _GPUS else pci.findall("gpu")
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


def _below(one: Element, above: tuple[str, ...]) -> Iterator[tuple[Element, tuple[str, ...]]]:
    for pci in one.findall("pci") if len(above) <= _DEEPEST else ():
        yield pci, above
        yield from _below(pci, ((pci.get("busid") or "").lower(), *above))


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


READERS = {_topology: ("<system",)}

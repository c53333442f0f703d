"""Reads NCCL's topology XML (NCCL_TOPO_DUMP_FILE): CPUs, PCI bridges, GPUs and their links."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import combinations
from xml.etree.ElementTree import Element

from ..lines import DECIMAL, address_of, index_of
from ..products import model_of
from ..told import Bridge, Facts, Found, ToldGpu, ToldNode
from ..xml_text import xml_in
from .host import count_of_mask

_SPEED = re.compile(rf"({DECIMAL}) GT/s")
_LINK_RATE = {"60": 18, "61": 18, "70": 25, "80": 25, "86": 14.0625, "90": 25, "100": 50}
"""The rate of an NVLink one way in GB/s, by the number of the architecture."""
_SWITCH = "0x068000"
_DEEPEST = 32


def read(lines: Sequence[str]) -> Found | None:
    found = xml_in(lines, "system")
    if found is None or found[0].get("version") is None:
        return None
    root, used = found
    graph = _XmlGraph()
    for cpu in root.iter("cpu"):
        graph.add_cpu(cpu)
    return Found(facts=graph.facts(), lines=used)


class _XmlGraph:
    def __init__(self) -> None:
        self._gpus: dict[int, ToldGpu] = {}
        self._links: dict[int, list[tuple[str, int]]] = {}
        self._bridges: dict[str, Bridge] = {}
        self._nodes: dict[int, ToldNode] = {}
        self._architecture: str | None = None

    def add_cpu(self, cpu: Element) -> None:
        node = index_of(cpu.get("numaid", "0"))
        if node is not None:
            self._nodes[node] = ToldNode(cpus=count_of_mask(cpu.get("affinity", "")))
        self._architecture = self._architecture or cpu.get("arch")
        for below in cpu.findall("pci"):
            self._add(below, node, ())

    def _add(self, pci: Element, node: int | None, above: tuple[str, ...]) -> None:
        address = (pci.get("busid") or "").lower()
        for gpu in pci.findall("gpu"):
            if (index := index_of(gpu.get("dev", ""))) is not None:
                self._gpus[index] = _gpu(gpu, pci, node, above)
                links = [*gpu.findall("nvlink"), *gpu.findall("xgmi")]
                self._links[index] = [_target(link) for link in links]
        inner = pci.findall("pci")
        if inner:
            self._bridges[address] = Bridge(*_link(pci), is_switch=True)
        if len(above) < _DEEPEST:
            for one in inner:
                self._add(one, node, (address, *above))

    def facts(self) -> Facts:
        at = {gpu.pci: index for index, gpu in self._gpus.items()}
        joins, counts = dict[tuple[int, int], str](), dict[int, int]()
        for index, links in self._links.items():
            for target, count in links:
                counts[index] = counts.get(index, 0) + count
                other = at.get(target)
                if other is not None and other > index:
                    joins[index, other] = f"NV{count}"
        through = [i for i, links in self._links.items() if any(t not in at for t, _ in links)]
        joins |= {(a, b): f"NV{min(counts[a], counts[b])}" for a, b in combinations(through, 2)}
        if not joins:
            joins = {pair: self._way(*pair) for pair in combinations(sorted(self._gpus), 2)}
        gpus = self._gpus
        return Facts(gpus, joins, self._bridges, self._nodes, architecture=self._architecture)

    def _way(self, one: int, other: int) -> str:
        a, b = self._gpus[one], self._gpus[other]
        if set(a.above) & set(b.above):
            return "PIX"
        return "NODE" if a.node == b.node else "SYS"


def _gpu(gpu: Element, pci: Element, node: int | None, above: tuple[str, ...]) -> ToldGpu:
    speed, width = _link(pci)
    rate = _LINK_RATE.get(gpu.get("sm", "")) if gpu.findall("nvlink") else None
    return ToldGpu(
        model=model_of(pci.get("device") or ""),
        pci=address_of(pci.get("busid", "")),
        node=node, max_speed=speed, width=width, above=above,
        link_rate=rate * 1e9 if rate else None,
    )  # fmt: skip


def _link(pci: Element) -> tuple[float | None, int | None]:
    speed = _SPEED.match(pci.get("link_speed", ""))
    width = index_of(pci.get("link_width", ""))
    return (float(speed[1]) if speed else None, width or None)


def _target(link: Element) -> tuple[str, int]:
    count = index_of(link.get("count", "1"))
    is_switch = link.get("tclass") == _SWITCH
    target = "switch" if is_switch else (link.get("target") or "").lower()
    return target, 1 if count is None else min(count, 64)

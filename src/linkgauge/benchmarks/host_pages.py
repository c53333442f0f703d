"""What pages and policies do to the host's memory: bandwidth, latency and first touch by kind of
page, and bandwidth by placement policy."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from linkgauge.model.machine import Node
from linkgauge.model.memory import NULL, PAGE_KINDS, POLICY_KINDS, host
from linkgauge.model.transfer import Cell, Engine, Report, Transfer
from linkgauge.model.units import LATENCY, format_size

from .host_latency import UNIT, beyond_caches, chase
from .host_sweeps import ENDS
from .table import NO_CPU, UNHURRIED, DeviceSet, Sweep

SIZES = (1 << 20, 8 << 20, 64 << 20)
"""Sizes of random accesses up to those beyond the caches. Base pages of 1 MiB are within reach of
any TLB, those of 64 MiB of few."""


def _by_pages(way: str) -> Callable[[DeviceSet], Iterator[Cell]]:
    def cells(fabric: DeviceSet) -> Iterator[Cell]:
        for node in fabric.with_cpus:
            for kind in PAGE_KINDS:
                memory = host(node.index, kind)
                transfer = Transfer(*ENDS[way](memory), Engine(memory.place, "cpu"))
                yield Cell(str(node.index), kind, (transfer,), Report.FIRST)

    return cells


def _latencies(fabric: DeviceSet) -> Iterator[Cell]:
    largest = beyond_caches(fabric)
    sizes = (*(size for size in SIZES if size < largest), largest)
    for node in fabric.with_cpus:
        for kind in PAGE_KINDS:
            for size in sizes:
                transfer = chase(node, host(node.index, kind), size // UNIT)
                place = f"{node.index} {kind}", format_size(size)
                yield Cell(*place, (transfer,), Report.LATENCY, operation="chase")


def _touches(fabric: DeviceSet) -> Iterator[Cell]:
    for node in fabric.with_cpus:
        for threads in dict.fromkeys((1, len(node.cpus))):
            for kind in PAGE_KINDS:
                memory = host(node.index, kind)
                transfer = Transfer(NULL, memory, Engine(memory.place, "cpu", threads))
                place = f"{node.index} cpu*{threads}", kind
                yield Cell(*place, (transfer,), Report.FIRST, operation="touch")


def _by_policy(way: str) -> Callable[[DeviceSet], Iterator[Cell]]:
    def transfer(node: Node, kind: str) -> Transfer:
        memory = host(node.index, kind)
        return Transfer(*ENDS[way](memory), Engine(memory.place, "cpu"))

    def cells(fabric: DeviceSet) -> Iterator[Cell]:
        nodes = fabric.with_cpus
        if len(fabric.nodes) < 2:
            return
        for name, kind in (("bind", ""), *((kind, kind) for kind in POLICY_KINDS)):
            for node in nodes:
                yield Cell(str(node.index), name, (transfer(node, kind),), Report.FIRST)
            if len(nodes) > 1:
                together = tuple(transfer(node, kind) for node in nodes)
                yield Cell("all", name, together, Report.TOTAL)

    return cells


PAGES: tuple[Sweep, ...] = (
    *(
        Sweep(
            f"memory_pages_{way}",
            f"{way} CPU within node(row) by kind of page(column)",
            _by_pages(way),
            size=beyond_caches,
            reason=NO_CPU,
            profiles=UNHURRIED,
        )
        for way in ENDS
    ),
    Sweep(
        "memory_pages_latency",
        "latency of random accesses by node and kind of page(row), by size(column)",
        _latencies,
        LATENCY,
        UNIT,
        NO_CPU,
        UNHURRIED,
    ),
    Sweep(
        "memory_pages_touch",
        "first touch of fresh memory by node and threads(row), by kind of page(column)",
        _touches,
        size=beyond_caches,
        reason=NO_CPU,
        profiles=UNHURRIED,
    ),
    *(
        Sweep(
            f"memory_pages_policy_{way}",
            f"{way} CPU by threads' node(row) of memory placed by policy(column)",
            _by_policy(way),
            size=beyond_caches,
            reason="needs two nodes: with one, every policy places pages alike",
            profiles=UNHURRIED,
        )
        for way in ENDS
    ),
)

"""Sweeps over host memory (by threads, kind, page and policy) and over arithmetic of CPUs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import product

from linkgauge.model.memory import NULL, PAGE_KINDS, POLICY_KINDS, Memory, host
from linkgauge.model.transfer import Cell, Engine, Report, Transfer
from linkgauge.model.units import LATENCY, RATE, format_size

from .host_latency import UNIT, beyond_caches, chase
from .table import (
    FIRST_LOOK,
    GENERAL,
    HOST_ROW,
    NO_CPU,
    UNHURRIED,
    DeviceSet,
    Profile,
    Sweep,
    counts_up_to,
)

ENDS: dict[str, Callable[[Memory], tuple[Memory, Memory]]] = {
    "read": lambda memory: (memory, NULL),
    "write": lambda memory: (NULL, memory),
    "copy": lambda memory: (memory, memory),
}


def _by_threads(way: str, fabric: DeviceSet) -> Iterator[Cell]:
    for node in fabric.nodes:
        memory = host(node.index)
        for count in counts_up_to(len(node.cpus)):
            transfer = Transfer(*ENDS[way](memory), Engine(memory, "cpu", count))
            yield Cell(str(node.index), str(count), (transfer,), Report.FIRST)


def _by_kind(way: str, kinds: Sequence[str], fabric: DeviceSet) -> Iterator[Cell]:
    for node in fabric.with_cpus:
        for kind in kinds:
            memory = host(node.index, kind)
            transfer = Transfer(*ENDS[way](memory), Engine(memory.place, "cpu"))
            yield Cell(str(node.index), kind or "pinned", (transfer,), Report.FIRST)


# host_threads_* is in no profile: memory_stream_* measures the same and more.
SWEEPS: tuple[Sweep, ...] = (
    *(
        Sweep(
            f"host_threads_memcpy_{way}_cpu",
            f"{way} CPU within node(row) by number of threads(column)",
            partial(_by_threads, way),
            profiles=(),
        )
        for way in ENDS
    ),
    Sweep(
        "host_kinds_memcpy_copy_cpu",
        "memcpy CPU within node(row) by kind of memory(column)",
        partial(_by_kind, "copy", ("", "pageable", "huge")),
        profiles=(),
    ),
)


# What pages and policies do to the host's memory: bandwidth, latency and first touch by kind of
# page, and bandwidth by placement policy.

SIZES = (1 << 20, 8 << 20, 64 << 20)
"""The buffer sizes of random accesses in bytes. With base pages, any TLB covers the smallest
buffer, and few TLBs the largest."""


def _latencies(fabric: DeviceSet) -> Iterator[Cell]:
    largest = beyond_caches(fabric)
    sizes = (*(size for size in SIZES if size < largest), largest)
    for node, kind, size in product(fabric.with_cpus, PAGE_KINDS, sizes):
        transfer = chase(node, host(node.index, kind), size // UNIT)
        place = f"{node.index} {kind}", format_size(size)
        yield Cell(*place, (transfer,), Report.LATENCY, operation="chase")


def _touches(fabric: DeviceSet) -> Iterator[Cell]:
    for node in fabric.with_cpus:
        for threads, kind in product(dict.fromkeys((1, len(node.cpus))), PAGE_KINDS):
            memory = host(node.index, kind)
            transfer = Transfer(NULL, memory, Engine(memory.place, "cpu", threads))
            place = f"{node.index} cpu*{threads}", kind
            yield Cell(*place, (transfer,), Report.FIRST, operation="touch")


def _by_policy(way: str, fabric: DeviceSet) -> Iterator[Cell]:
    if len(fabric.nodes) < 2:
        return
    for kind in ("", *POLICY_KINDS):
        memories = [host(node.index, kind) for node in fabric.with_cpus]
        together = [Transfer(*ENDS[way](m), Engine(m.place, "cpu")) for m in memories]
        for memory, transfer in zip(memories, together, strict=True):
            yield Cell(memory.label, kind or "bind", (transfer,), Report.FIRST)
        if len(together) > 1:
            yield Cell("all", kind or "bind", tuple(together), Report.TOTAL)


PAGES: tuple[Sweep, ...] = (
    *(
        Sweep(
            f"memory_pages_{way}",
            f"{way} CPU within node(row) by kind of page(column)",
            partial(_by_kind, way, PAGE_KINDS),
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
            partial(_by_policy, way),
            size=beyond_caches,
            reason="needs two nodes: with one, every policy places pages in the same way",
            profiles=UNHURRIED,
        )
        for way in ENDS
    ),
)


# What the CPUs compute, by the work of sysbench's cpu test: one thread, and all.

_NO_BYTES = 0
"""The size of an operation that moves no bytes."""


def _primes(by_one: bool, fabric: DeviceSet) -> Iterator[Cell]:
    nodes = fabric.with_cpus[:1] if by_one else fabric.with_cpus
    engines = [Engine(host(n.index), "cpu", 1 if by_one else len(n.cpus)) for n in nodes]
    if engines:
        transfers = tuple(Transfer(NULL, NULL, engine) for engine in engines)
        threads = str(sum(engine.count or 0 for engine in engines))
        yield Cell(HOST_ROW, threads, transfers, Report.RATE, operation="primes")


_PRIMES: tuple[tuple[str, str, bool, tuple[Profile, ...]], ...] = (
    ("single", "one thread", True, GENERAL),
    ("all", "all threads", False, (*GENERAL, FIRST_LOOK)),
)
PRIMES: tuple[Sweep, ...] = tuple(
    Sweep(
        f"cpu_primes_{name}",
        f"primes up to 10,000 (sysbench cpu), {threads}(column)",
        partial(_primes, by_one),
        RATE,
        _NO_BYTES,
        f"{NO_CPU} by this process (cpuset)",
        profiles,
    )
    for name, threads, by_one, profiles in _PRIMES
)

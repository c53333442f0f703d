"""Latencies of the host's memory by size, page, node and load, and of cache lines between CPUs."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations, permutations, product

from linkgauge.model.hardware.machine import Node
from linkgauge.model.memory import NULL, Memory, host
from linkgauge.model.transfer import Cell, Engine, Report, Transfer
from linkgauge.model.units import LATENCY, format_size

from .table import FIRST_LOOK, GENERAL, NO_CPU, UNHURRIED, DeviceSet, Sweep

UNIT = 2 << 10
"""The sizes of a curve are multiples of this number of bytes."""
SMALLEST, LARGEST = 4 << 10, 512 << 20
BEYOND = 4
"""The largest buffers are at least this many times as large as the largest cache."""
ALONE = 64 << 20
"""The smallest buffer, in bytes, for a pointer chase that must miss all caches."""
SHARE = 4
"""A buffer takes at most one part in this many of the available memory."""
PAGES = ("base", "huge")
FEW_NODES = 2
LOADS = (0, 25, 50, 75, 100)
MIXES = (3, 2, 1)
"""The numbers of threads that read for each thread that writes."""

LINE = 64
"""The size of a cache line in bytes."""
BRIEF_CPUS = 8
MOST_CPUS = 64
MOST_OF_ALL = 512
"""The largest number of CPUs to measure: in the quick profile, in other profiles, and in `full`."""


def _caches(fabric: DeviceSet) -> int:
    return max((node.last_level_cache or 0 for node in fabric.nodes), default=0)


def half_octaves(least: int, most: int) -> Iterator[int]:
    """Yields sizes from `least` to `most`, two for each doubling: 4, 6, 8, 12, 16 …"""
    size = least
    while size <= most:
        yield size
        if size * 3 // 2 <= most:
            yield size * 3 // 2
        size *= 2


def sizes_of(node: Node, caches: int) -> tuple[int, ...]:
    """Returns the buffer sizes in bytes to measure. `caches` is the largest cache's size."""
    most = LARGEST
    while most < BEYOND * caches:
        most *= 2
    if node.memory_available is not None:
        most = min(most, node.memory_available // SHARE)
    return tuple(half_octaves(SMALLEST, most))


def node_pairs(fabric: DeviceSet) -> Iterator[tuple[Node, Node]]:
    """Yields pairs of nodes: the thread's node and the memory's. If nodes are few, or in the full
    profile, yields all pairs; else each node with itself, and the first node with every node."""
    first = fabric.with_cpus[:1]
    for of_thread, of_memory in _reached(fabric):
        chosen = of_thread in (of_memory, *first)
        if chosen or fabric.full or len(fabric.nodes) <= FEW_NODES:
            yield of_thread, of_memory


def _reached(fabric: DeviceSet) -> list[tuple[Node, Node]]:
    return [pair for pair in fabric.reachable if pair[0].cpus]


def _part_of(measured: int, there: int, what: str) -> str:
    return "" if measured == there else f", {measured} of {there} {what}"


def _pairs_left_out(fabric: DeviceSet) -> str:
    return _part_of(len(list(node_pairs(fabric))), len(_reached(fabric)), "pairs of nodes")


def chase(of_thread: Node, memory: Memory, scale: int = 1) -> Transfer:
    return Transfer(memory, NULL, Engine(host(of_thread.index), "cpu", 1), scale)


def _curves(fabric: DeviceSet) -> Iterator[Cell]:
    for of_thread, of_memory in node_pairs(fabric):
        which = str(of_thread.index)
        if of_thread != of_memory:
            which += f"<-{of_memory.index}"
        for pages in PAGES:
            for size in sizes_of(of_memory, _caches(fabric)):
                transfer = chase(of_thread, host(of_memory.index, pages), size // UNIT)
                place = f"{which} {pages}", format_size(size)
                yield Cell(*place, (transfer,), Report.LATENCY, operation="chase")


def beyond_caches(fabric: DeviceSet) -> int:
    """Returns a buffer size beyond the caches in bytes: `fabric.buffer` if known, else computed."""
    if fabric.buffer is not None:
        return fabric.buffer
    wanted = max(ALONE, BEYOND * _caches(fabric))
    free = [node.memory_available for node in fabric.nodes if node.memory_available is not None]
    most = min((wanted, *(one // SHARE // 2 for one in free)))
    return max(most >> 20, 1) << 20


def _between_nodes(fabric: DeviceSet) -> Iterator[Cell]:
    pairs = _reached(fabric)
    if fabric.is_first_look:
        pairs = [(node, other) for node, other in pairs if node == other][:1]
    for of_thread, of_memory in pairs:
        transfer = chase(of_thread, host(of_memory.index))
        place = str(of_thread.index), str(of_memory.index)
        yield Cell(*place, (transfer,), Report.LATENCY, operation="chase")


def _loads(node: Node) -> Iterator[tuple[str, list[tuple[Memory, Memory, int]]]]:
    memory, others = host(node.index), max(1, len(node.cpus) - 1)
    yield "read", [(memory, NULL, others)]
    for readers in MIXES:
        writers = max(1, others // (readers + 1))
        both = [(memory, NULL, readers * writers), (NULL, memory, writers)]
        yield f"{readers}:1", both
    yield "copy", [(memory, memory, others)]
    yield "write", [(NULL, memory, others)]


def _of_several_cpus(fabric: DeviceSet) -> list[Node]:
    return [node for node in fabric.with_cpus if len(node.cpus) > 1]


def _under_load(fabric: DeviceSet) -> list[Node]:
    nodes = _of_several_cpus(fabric)
    return nodes if fabric.full or len(nodes) <= FEW_NODES else nodes[:1]


def _loaded(fabric: DeviceSet) -> Iterator[Cell]:
    for node in _under_load(fabric):
        owner = host(node.index)
        for (name, ends), load in product(_loads(node), LOADS):
            concurrent = [
                Transfer(source, destination, Engine(owner, "cpu", threads), load=load)
                for source, destination, threads in ends
                if load
            ]
            if not load and sum(threads for *_, threads in ends) >= len(node.cpus):
                continue  # its other cells are skipped, with the reason
            place = f"{node.index} {name}", f"{load}%"
            transfers = (chase(node, owner), *concurrent)
            yield Cell(*place, transfers, Report.LATENCY, operation="chase")


def _loaded_left_out(fabric: DeviceSet) -> str:
    return _part_of(len(_under_load(fabric)), len(_of_several_cpus(fabric)), "nodes")


def chosen_cpus(fabric: DeviceSet) -> tuple[int, ...]:
    """Returns the CPUs to measure: all, one of each core, or evenly spaced ones. The profile and
    the number of CPUs decide. CPUs that share no memory with the first node are left out."""
    nodes = [node for first, node in fabric.reachable if first == fabric.nodes[0]]
    cpus = tuple(cpu for node in nodes for cpu in node.cpus)
    cores = tuple(cpu for node in nodes for cpu in node.cores or node.cpus)
    if fabric.is_first_look:
        return (cores if len(cores) > 1 else cpus)[:2]
    most = MOST_OF_ALL if fabric.full else BRIEF_CPUS if fabric.brief else MOST_CPUS
    thinned = len(cores) > 1 and not fabric.full and (fabric.brief or len(cpus) > most)
    among = cores if thinned else cpus
    count = min(most, len(among))
    return tuple(among[at * len(among) // count] for at in range(count))


def _cpus_left_out(fabric: DeviceSet) -> str:
    there = sum(len(node.cpus) for node in fabric.nodes)
    return _part_of(len(chosen_cpus(fabric)), there, "CPUs")


def _between_cpus(fabric: DeviceSet) -> Iterator[Cell]:
    ordered = combinations if fabric.is_first_look else permutations
    for first, second in ordered(chosen_cpus(fabric), 2):
        begins = Memory("cpu", first)
        transfer = Transfer(begins, Memory("cpu", second), Engine(begins, "cpu"))
        yield Cell(str(first), str(second), (transfer,), Report.LATENCY, operation="ping-pong")


LATENCIES: tuple[Sweep, ...] = (
    Sweep(
        "memory_latency",
        "latency of memory by CPU of node <- node, base or huge pages(row), by size(column)",
        _curves,
        LATENCY,
        UNIT,
        NO_CPU,
        UNHURRIED,
        _pairs_left_out,
    ),
    Sweep(
        "memory_latency_nodes",
        "latency of memory, CPU of node(row) <- memory of node(column)",
        _between_nodes,
        LATENCY,
        beyond_caches,
        NO_CPU,
        (*UNHURRIED, FIRST_LOOK),
    ),
    Sweep(
        "memory_latency_loaded",
        "latency of a node's memory while its other CPUs read, write or both(row) at a share of "
        "their rate(column)",
        _loaded,
        LATENCY,
        beyond_caches,
        "needs two CPUs of one node: one follows pointers, the others load the memory",
        UNHURRIED,
        _loaded_left_out,
    ),
    Sweep(
        "core_to_core_latency",
        "latency of a cache line, CPU(row) -> CPU(column), one way",
        _between_cpus,
        LATENCY,
        LINE,
        "needs two CPUs",
        (*GENERAL, FIRST_LOOK),
        _cpus_left_out,
    ),
)

"""Latencies of the host's memory by size, page and node, and while other threads load the memory.
Also latencies of cache lines between CPUs."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import permutations, product

from linkgauge.model.hardware.machine import Node
from linkgauge.model.memory import NULL, Memory, host
from linkgauge.model.transfer import Cell, Engine, Report, Transfer
from linkgauge.model.units import LATENCY, format_size

from .table import NO_CPU, UNHURRIED, DeviceSet, Sweep

UNIT = 2 << 10
"""Bytes of which the sizes of a curve are multiples."""
SMALLEST, LARGEST = 4 << 10, 512 << 20
BEYOND = 4
"""The least factor by which the largest size of a curve exceeds the caches. The latency of memory
alone is measured in a memory that exceeds the caches by the same factor."""
ALONE = 64 << 20
"""The fewest bytes of a pointer chase that is to miss all caches."""
SHARE = 4
"""The divisor of the available memory: at most 1/4 of that memory is used."""
PAGES = ("base", "huge")
FEW_NODES = 2
LOADS = (0, 25, 50, 75, 100)
MIXES = (3, 2, 1)
"""The numbers of threads that read for each thread that writes."""

LINE = 64
"""Bytes of a cache line."""
BRIEF_CPUS = 8
MOST_CPUS = 64
MOST_OF_ALL = 512
"""The most CPUs between which latencies are measured: in the quick profile, in others, and in
`full` (as many as two sockets have). A rack would have millions of pairs."""


def _caches(fabric: DeviceSet) -> int:
    return max((node.last_level_cache or 0 for node in fabric.nodes), default=0)


def half_octaves(least: int, most: int) -> Iterator[int]:
    """Yields sizes up to `most`, two for each factor of 2: 4, 6, 8, 12, 16 … for `least` = 4."""
    size = least
    while size <= most:
        yield size
        if size * 3 // 2 <= most:
            yield size * 3 // 2
        size *= 2


def sizes_of(node: Node, caches: int) -> tuple[int, ...]:
    """Returns the sizes for a curve of latencies through the memory of `node`. `caches` is the size
    in bytes of the machine's largest cache."""
    most = LARGEST
    while most < BEYOND * caches:
        most *= 2
    if node.memory_available is not None:
        most = min(most, node.memory_available // SHARE)
    return tuple(half_octaves(SMALLEST, most))


def node_pairs(fabric: DeviceSet) -> Iterator[tuple[Node, Node]]:
    """Yields pairs of nodes: the thread's and the memory's. With few nodes, yields all pairs. With
    many nodes, yields each node with itself and the first node with all others."""
    first = fabric.with_cpus[:1]
    for of_thread, of_memory in _reached(fabric):
        chosen = of_thread in (of_memory, *first)
        if chosen or fabric.full or len(fabric.nodes) <= FEW_NODES:
            yield of_thread, of_memory


def _reached(fabric: DeviceSet) -> list[tuple[Node, Node]]:
    return [pair for pair in fabric.reachable if pair[0].cpus]


def _pairs_left_out(fabric: DeviceSet) -> str:
    measured, there = len(list(node_pairs(fabric))), len(_reached(fabric))
    return "" if measured == there else f", {measured} of {there} pairs of nodes"


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
    """Returns a size of memory in bytes that exceeds the caches, in whole MiB."""
    wanted = max(ALONE, BEYOND * _caches(fabric))
    free = [node.memory_available for node in fabric.nodes if node.memory_available is not None]
    most = min((wanted, *(one // SHARE // 2 for one in free)))
    return max(most >> 20, 1) << 20


def _between_nodes(fabric: DeviceSet) -> Iterator[Cell]:
    for of_thread, of_memory in _reached(fabric):
        transfer = chase(of_thread, host(of_memory.index))
        place = str(of_thread.index), str(of_memory.index)
        yield Cell(*place, (transfer,), Report.LATENCY, operation="chase")


def _loads(node: Node) -> Iterator[tuple[str, list[tuple[Memory, Memory, int]]]]:
    """Yields the loads that other threads make: a name and a list of transfers. Each transfer has
    source, destination and number of threads."""
    memory, others = host(node.index), max(1, len(node.cpus) - 1)
    yield "read", [(memory, NULL, others)]
    for readers in MIXES:
        writers = max(1, others // (readers + 1))
        both = [(memory, NULL, readers * writers), (NULL, memory, writers)]
        yield f"{readers}:1", both
    yield "copy", [(memory, memory, others)]
    yield "write", [(NULL, memory, others)]


def _loaded(fabric: DeviceSet) -> Iterator[Cell]:
    nodes = [node for node in fabric.with_cpus if len(node.cpus) > 1]
    for node in nodes if fabric.full or len(nodes) <= FEW_NODES else nodes[:1]:
        owner = host(node.index)
        for (name, ends), load in product(_loads(node), LOADS):
            beside = [
                Transfer(source, destination, Engine(owner, "cpu", threads), load=load)
                for source, destination, threads in ends
                if load
            ]
            if not load and sum(threads for *_, threads in ends) >= len(node.cpus):
                continue  # its other cells are skipped, with the reason
            place = f"{node.index} {name}", f"{load}%"
            transfers = (chase(node, owner), *beside)
            yield Cell(*place, transfers, Report.LATENCY, operation="chase")


def _loaded_left_out(fabric: DeviceSet) -> str:
    nodes = [node for node in fabric.with_cpus if len(node.cpus) > 1]
    few = fabric.full or len(nodes) <= FEW_NODES
    return "" if few else f", 1 of {len(nodes)} nodes"


def chosen_cpus(fabric: DeviceSet) -> tuple[int, ...]:
    """Returns the CPUs to measure: all CPUs, or evenly spaced ones if there are too many. Too many
    CPUs, and the quick profile, are first reduced to one CPU of each core (except on a single
    core). CPUs that share no memory with the first node's CPUs are left out."""
    nodes = [node for first, node in fabric.reachable if first == fabric.nodes[0]]
    cpus = tuple(cpu for node in nodes for cpu in node.cpus)
    cores = tuple(cpu for node in nodes for cpu in node.cores or node.cpus)
    most = MOST_OF_ALL if fabric.full else BRIEF_CPUS if fabric.brief else MOST_CPUS
    thinned = len(cores) > 1 and not fabric.full and (fabric.brief or len(cpus) > most)
    among = cores if thinned else cpus
    count = min(most, len(among))
    return tuple(among[at * len(among) // count] for at in range(count))


def _cpus_left_out(fabric: DeviceSet) -> str:
    chosen, there = len(chosen_cpus(fabric)), sum(len(node.cpus) for node in fabric.nodes)
    return "" if chosen == there else f", {chosen} of {there} CPUs"


def _between_cpus(fabric: DeviceSet) -> Iterator[Cell]:
    for first, second in permutations(chosen_cpus(fabric), 2):
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
        "latency of memory CPU of node(row) <- memory of node(column)",
        _between_nodes,
        LATENCY,
        beyond_caches,
        NO_CPU,
        UNHURRIED,
    ),
    Sweep(
        "memory_latency_loaded",
        "latency of memory while its other CPUs read, write or both(row) at a share of their "
        "rate(column)",
        _loaded,
        LATENCY,
        beyond_caches,
        "needs two CPUs of one node: one follows pointers, the others load the memory",
        UNHURRIED,
        _loaded_left_out,
    ),
    Sweep(
        "core_to_core_latency",
        "latency of a cache line CPU(row) -> CPU(column), one way",
        _between_cpus,
        LATENCY,
        LINE,
        "needs two CPUs",
        left_out=_cpus_left_out,
    ),
)

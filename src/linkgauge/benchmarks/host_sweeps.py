"""Sweeps over the host's own memory and CPUs: how bandwidth grows with threads, by kind of memory,
and the latency of a cache line from one CPU to another."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import permutations

from linkgauge.model.transfer import NULL, Cell, Engine, Memory, Report, Transfer, host
from linkgauge.model.units import LATENCY

from .table import DeviceSet, Sweep

_ENDS: dict[str, Callable[[Memory], tuple[Memory, Memory]]] = {
    "read": lambda memory: (memory, NULL),
    "write": lambda memory: (NULL, memory),
    "copy": lambda memory: (memory, memory),
}

LINE = 64
"""Bytes of a cache line."""
MOST_CPUS = 8
MOST_OF_ALL = 512
"""Maximum number of CPUs between which latencies are measured with the profile `full`: those of two
sockets. A rack's would be millions of pairs."""


def thread_counts(cpus: int) -> tuple[int, ...]:
    """Powers of two up to the number of CPUs, and that number: 1, 2, 4, 6 for six."""
    powers = [1 << k for k in range(cpus.bit_length()) if 1 << k <= cpus]
    return tuple(dict.fromkeys((*powers, cpus))) if cpus else ()


def _by_threads(operation: str) -> Callable[[DeviceSet], Iterator[Cell]]:
    def cells(fabric: DeviceSet) -> Iterator[Cell]:
        for node in fabric.nodes:
            memory = host(node.index)
            for count in thread_counts(len(node.cpus)):
                transfer = Transfer(*_ENDS[operation](memory), Engine(memory, "cpu", count))
                yield Cell(str(node.index), str(count), (transfer,), Report.FIRST)

    return cells


def _by_kind(fabric: DeviceSet) -> Iterator[Cell]:
    for node in fabric.nodes:
        for name, kind in (("pinned", ""), ("pageable", "pageable"), ("huge", "huge")):
            memory = host(node.index, kind)
            transfer = Transfer(memory, memory, Engine(memory.place, "cpu"))
            yield Cell(str(node.index), name, (transfer,), Report.FIRST)


def chosen_cpus(fabric: DeviceSet) -> tuple[int, ...]:
    """One CPU per core, evenly thinned out if there are too many; all CPUs if there is only one
    core or everything is to be measured."""
    cpus = tuple(cpu for node in fabric.nodes for cpu in node.cpus)
    cores = tuple(cpu for node in fabric.nodes for cpu in node.cores or node.cpus)
    among = cpus if fabric.full or len(cores) < 2 else cores
    count = min(MOST_OF_ALL if fabric.full else MOST_CPUS, len(among))
    return tuple(among[at * len(among) // count] for at in range(count))


def _between_cpus(fabric: DeviceSet) -> Iterator[Cell]:
    for first, second in permutations(chosen_cpus(fabric), 2):
        begins = Memory("cpu", first)
        transfer = Transfer(begins, Memory("cpu", second), Engine(begins, "cpu"))
        yield Cell(str(first), str(second), (transfer,), Report.LATENCY, operation="ping-pong")


SWEEPS: tuple[Sweep, ...] = (
    *(
        Sweep(
            f"host_threads_memcpy_{operation}_cpu",
            f"{operation} CPU within node(row) by number of threads(column)",
            _by_threads(operation),
        )
        for operation in _ENDS
    ),
    Sweep(
        "host_kinds_memcpy_copy_cpu",
        "memcpy CPU within node(row) by kind of memory(column)",
        _by_kind,
    ),
    Sweep(
        "core_to_core_latency",
        "latency of a cache line CPU(row) -> CPU(column), one way",
        _between_cpus,
        LATENCY,
        LINE,
        "needs two CPUs",
    ),
)

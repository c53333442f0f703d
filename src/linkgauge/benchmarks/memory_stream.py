"""STREAM's operations on the host's memory: over 1 to all threads, and over every pair of nodes.

The row is the node of the threads and how they work, the column their number, with memory of their
own node, or the node of the memory, with all threads. A machine of several nodes also has a row for
all of its threads, each node's in their own memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from linkgauge.model.arrays import ARRAYS, HOST_MODES, ArrayKind, HostMode
from linkgauge.model.machine import Node
from linkgauge.model.transfer import NULL, Cell, Engine, Memory, Report, Transfer, host
from linkgauge.model.units import STREAM

from .host_sweeps import thread_counts
from .table import EVERY_PROFILE, UNHURRIED, DeviceSet, Profile, Sweep

_PROFILES: dict[ArrayKind, tuple[Profile, ...]] = {
    "copy": EVERY_PROFILE,
    "scale": UNHURRIED,
    "add": UNHURRIED,
    "triad": EVERY_PROFILE,
    "read": UNHURRIED,
    "write": UNHURRIED,
}


def _cells_of(kind: ArrayKind) -> Callable[[DeviceSet], Iterator[Cell]]:
    def cells(fabric: DeviceSet) -> Iterator[Cell]:
        for mode in HOST_MODES:
            yield from _cells(kind, mode, fabric)

    return cells


def _cells(kind: ArrayKind, mode: HostMode, fabric: DeviceSet) -> Iterator[Cell]:
    def cell(row: str, column: str, *transfers: Transfer) -> Cell:
        report = Report.TOTAL if len(transfers) > 1 else Report.FIRST
        return Cell(f"{row} {mode}", column, transfers, report, operation=f"{mode}-{kind}")  # type: ignore[arg-type]  # one of them

    nodes, with_cpus = fabric.nodes, fabric.with_cpus
    for node in nodes:
        for count in thread_counts(len(node.cpus)):
            yield cell(str(node.index), str(count), _work(kind, node, node, count))
    if len(with_cpus) > 1:
        threads = sum(len(node.cpus) for node in with_cpus)
        yield cell("all", str(threads), *(_work(kind, node, node) for node in with_cpus))
    if len(nodes) > 1:
        for threads_of in nodes:
            for memory_of in nodes:
                row, column = str(threads_of.index), f"host:{memory_of.index}"
                yield cell(row, column, _work(kind, threads_of, memory_of))


def _work(kind: ArrayKind, threads: Node, memory: Node, count: int | None = None) -> Transfer:
    """Threads of one node work on memory of one."""
    work, place = ARRAYS[f"stream-{kind}"], host(memory.index)
    source: Memory = place if work.read else NULL
    destination: Memory = place if work.written else NULL
    return Transfer(source, destination, Engine(host(threads.index), "cpu", count))


MEMORY_STREAM = tuple(
    Sweep(
        f"memory_stream_{kind}",
        f"{kind} ({work.formula}) CPU threads of node(row) by their number or their memory(column)",
        _cells_of(kind),
        STREAM,
        profiles=_PROFILES[kind],
    )
    for work in ARRAYS.values()
    if work.mode == HOST_MODES[0]
    for kind in (work.kind,)
)

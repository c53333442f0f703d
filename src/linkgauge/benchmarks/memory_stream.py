"""STREAM's operations on the host's memory. A row names the NUMA node whose CPUs run the threads,
and how the threads access memory. A column is either a number of threads, which use the row's node,
or the node whose memory all threads of the row use. In the row `all`, threads on all nodes use
memory of their own node, as in STREAM. Profile `vm` measures only this, and triad between nodes."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from linkgauge.model.hardware.machine import Node
from linkgauge.model.memory import NULL, Memory, host
from linkgauge.model.operations.operation import ARRAYS, HOST_MODES, ArrayKind, HostMode
from linkgauge.model.transfer import Cell, Engine, Report, Transfer
from linkgauge.model.units import STREAM

from .table import FIRST_LOOK, GENERAL, NO_CPU, UNHURRIED, DeviceSet, Profile, Sweep, counts_up_to

_PROFILES: dict[ArrayKind, tuple[Profile, ...]] = {
    "copy": (*GENERAL, FIRST_LOOK),
    "scale": UNHURRIED,
    "add": UNHURRIED,
    "triad": (*GENERAL, FIRST_LOOK),
    "read": (*UNHURRIED, FIRST_LOOK),
    "write": UNHURRIED,
}
_BY_ONE_THREAD: tuple[ArrayKind, ...] = ("read", "copy")
"""What a first look also measures by one thread."""


def _cells(kind: ArrayKind, fabric: DeviceSet) -> Iterator[Cell]:
    if fabric.is_first_look and kind in _BY_ONE_THREAD:
        yield from _one_thread(kind, fabric)
    if fabric.for_comparison or fabric.is_first_look:
        yield from _all_threads(kind, "stream", fabric)
        return
    for mode in HOST_MODES:
        for node in fabric.nodes:
            for count in counts_up_to(len(node.cpus)):
                transfer = array_work(kind, node, node, count)
                yield _cell(kind, mode, str(node.index), str(count), transfer)
        if len(fabric.with_cpus) > 1:
            yield from _all_threads(kind, mode, fabric)
        if len(fabric.nodes) > 1:
            yield from _pairs(kind, mode, fabric)


def _cell(kind: ArrayKind, mode: HostMode, row: str, column: str, *transfers: Transfer) -> Cell:
    report = Report.TOTAL if len(transfers) > 1 else Report.FIRST
    operation = f"{mode}-{kind}"
    return Cell(f"{row} {mode}", column, transfers, report, operation=operation)  # type: ignore[arg-type]  # one of them


def _one_thread(kind: ArrayKind, fabric: DeviceSet) -> Iterator[Cell]:
    if sum(len(node.cpus) for node in fabric.nodes) > 1:
        node = fabric.with_cpus[0]
        yield _cell(kind, "stream", str(node.index), "1", array_work(kind, node, node, 1))


def _all_threads(kind: ArrayKind, mode: HostMode, fabric: DeviceSet) -> Iterator[Cell]:
    nodes = fabric.with_cpus
    if nodes:
        row = "all" if len(nodes) > 1 else str(nodes[0].index)
        threads = sum(len(node.cpus) for node in nodes)
        yield _cell(
            kind, mode, row, str(threads), *(array_work(kind, node, node) for node in nodes)
        )


def _pairs(kind: ArrayKind, mode: HostMode, fabric: DeviceSet) -> Iterator[Cell]:
    for threads_of, memory_of in fabric.reachable:
        row, column = str(threads_of.index), f"host:{memory_of.index}"
        yield _cell(kind, mode, row, column, array_work(kind, threads_of, memory_of))


def _by_node(fabric: DeviceSet) -> Iterator[Cell]:
    if len(fabric.nodes) < 2:
        return
    yield from _pairs("triad", "stream", fabric)
    for memory_of in fabric.nodes:
        nodes = [node for node, other in fabric.reachable if node.cpus and other == memory_of]
        if len(nodes) > 1:
            work = (array_work("triad", node, memory_of) for node in nodes)
            yield _cell("triad", "stream", "all", f"host:{memory_of.index}", *work)


def array_work(kind: ArrayKind, threads: Node, memory: Node, count: int | None = None) -> Transfer:
    work, place = ARRAYS[f"stream-{kind}"], host(memory.index)
    source: Memory = place if work.read else NULL
    destination: Memory = place if work.written else NULL
    return Transfer(source, destination, Engine(host(threads.index), "cpu", count))


MEMORY_STREAM = (
    *(
        Sweep(
            f"memory_stream_{kind}",
            f"{kind} ({work.formula}) CPU threads of node(row) by number of threads or "
            "memory(column)",
            partial(_cells, kind),
            STREAM,
            reason=NO_CPU,
            profiles=_PROFILES[kind],
        )
        for work in ARRAYS.values()
        if work.mode == HOST_MODES[0]
        for kind in (work.kind,)
    ),
    # In no general profile: the others measure the pairs of nodes with every operation.
    Sweep(
        "memory_stream_nodes",
        f"triad ({ARRAYS['stream-triad'].formula}) CPU threads of node(row), memory of "
        "node(column)",
        _by_node,
        STREAM,
        reason="needs two nodes: with one, all memory is local",
        profiles=(),
    ),
)

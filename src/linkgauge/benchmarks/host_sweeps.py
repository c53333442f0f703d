"""Sweeps over the host's own memory: how bandwidth grows with threads, and by kind of memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from linkgauge.model.memory import NULL, Memory, host
from linkgauge.model.transfer import Cell, Engine, Report, Transfer

from .table import DeviceSet, Sweep

ENDS: dict[str, Callable[[Memory], tuple[Memory, Memory]]] = {
    "read": lambda memory: (memory, NULL),
    "write": lambda memory: (NULL, memory),
    "copy": lambda memory: (memory, memory),
}


def thread_counts(cpus: int) -> tuple[int, ...]:
    """Powers of two up to the number of CPUs, and that number: 1, 2, 4, 6 for six."""
    powers = [1 << k for k in range(cpus.bit_length()) if 1 << k <= cpus]
    return tuple(dict.fromkeys((*powers, cpus))) if cpus else ()


def _by_threads(way: str) -> Callable[[DeviceSet], Iterator[Cell]]:
    def cells(fabric: DeviceSet) -> Iterator[Cell]:
        for node in fabric.nodes:
            memory = host(node.index)
            for count in thread_counts(len(node.cpus)):
                transfer = Transfer(*ENDS[way](memory), Engine(memory, "cpu", count))
                yield Cell(str(node.index), str(count), (transfer,), Report.FIRST)

    return cells


def _by_kind(fabric: DeviceSet) -> Iterator[Cell]:
    for node in fabric.nodes:
        for name, kind in (("pinned", ""), ("pageable", "pageable"), ("huge", "huge")):
            memory = host(node.index, kind)
            transfer = Transfer(memory, memory, Engine(memory.place, "cpu"))
            yield Cell(str(node.index), name, (transfer,), Report.FIRST)


# host_threads_* is in no profile: memory_stream_* measures the same and more.
SWEEPS: tuple[Sweep, ...] = (
    *(
        Sweep(
            f"host_threads_memcpy_{way}_cpu",
            f"{way} CPU within node(row) by number of threads(column)",
            _by_threads(way),
            profiles=(),
        )
        for way in ENDS
    ),
    Sweep(
        "host_kinds_memcpy_copy_cpu",
        "memcpy CPU within node(row) by kind of memory(column)",
        _by_kind,
        profiles=(),
    ),
)

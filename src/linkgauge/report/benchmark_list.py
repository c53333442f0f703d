"""What `list` shows: the benchmarks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.text import Text

from linkgauge.benchmarks.collectives import COLLECTIVES
from linkgauge.benchmarks.concurrency import CONCURRENCY
from linkgauge.benchmarks.copies import HOST, NVBANDWIDTH
from linkgauge.benchmarks.gpu import GPU
from linkgauge.benchmarks.host_latency import LATENCIES
from linkgauge.benchmarks.host_pages import PAGES
from linkgauge.benchmarks.host_sweeps import SWEEPS
from linkgauge.benchmarks.latency import LATENCY_OF_DEVICES
from linkgauge.benchmarks.memory_stream import MEMORY_STREAM
from linkgauge.benchmarks.multinode import BETWEEN_PROCESSES
from linkgauge.benchmarks.network import OVER_NICS
from linkgauge.benchmarks.nodes import NODES
from linkgauge.benchmarks.overlap import OVERLAP
from linkgauge.benchmarks.primes import PRIMES
from linkgauge.benchmarks.table import Row, Sweep
from linkgauge.benchmarks.within_node import WITHIN_NODE
from linkgauge.benchmarks.workloads import SERVING, WORKLOADS

from .files import json_document
from .wrapping import Hanging

GROUPS: Mapping[str, Sequence[Row | Sweep]] = {
    "Between the host and devices": [row for row in NVBANDWIDTH if "host" in row.name],
    "Between devices": [row for row in NVBANDWIDTH if "host" not in row.name],
    "Between all devices at once": WITHIN_NODE,
    "More and more copies at once": CONCURRENCY,
    "Copies while a device computes": OVERLAP,
    "Single copies, flags and launches of devices": LATENCY_OF_DEVICES,
    "Memory and arithmetic of devices": GPU,
    "Collectives": COLLECTIVES,
    "Between processes and nodes": BETWEEN_PROCESSES,
    "Over network interfaces": OVER_NICS,
    "Between many nodes": NODES,
    "Copies by host threads": (*HOST, *SWEEPS),
    "Bandwidth of host memory": MEMORY_STREAM,
    "Latency of host memory and CPUs": LATENCIES,
    "Pages and placement of host memory": PAGES,
    "Arithmetic of CPUs": PRIMES,
    "AI workloads (torch)": WORKLOADS,
    "Servers under load": SERVING,
}
"""The benchmarks by what they measure."""
_WIDEST = 100
"""Columns: longer lines of names are hard to read."""


class _Names:
    """Names side by side, as many as fit."""

    def __init__(self, names: Sequence[str]) -> None:
        self.names = names

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        line = Hanging(Text("  " + "  ".join(self.names)), 2)
        yield from line.__rich_console__(
            console, options.update(width=min(options.max_width, _WIDEST))
        )


def overview_lines(rows: Sequence[Row | Sweep]) -> Iterator[RenderableType]:
    """The names by what they measure."""
    asked = {row.name for row in rows}
    for title, group in GROUPS.items():
        names = [row.name for row in group if row.name in asked]
        if names:
            yield Text(title, "bold")
            yield _Names(names)
    yield Text()
    yield Hanging(Text("-v describes each benchmark; --prefix describes some.", "dim"), 0)


def benchmark_lines(rows: Sequence[Row | Sweep]) -> Iterator[RenderableType]:
    """Two lines for each: its name with the profiles that measure it, and what it measures."""
    for row in rows:
        yield Text.assemble((row.name, "bold"), (f"  {' '.join(row.profiles)}".rstrip(), "dim"))
        yield Hanging(Text(f"    {row.title}"), 4)


def benchmarks_document(rows: Sequence[Row | Sweep]) -> str:
    return json_document(
        [{"name": row.name, "title": row.title, "profiles": row.profiles} for row in rows]
    )

"""What the CPUs compute, by the work of sysbench's cpu test: one thread, and all."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from linkgauge.model.memory import NULL, host
from linkgauge.model.transfer import Cell, Engine, Report, Transfer
from linkgauge.model.units import RATE

from .table import HOST_ROW, NO_CPU, DeviceSet, Sweep

_NO_BYTES = 0
"""The size of what is in no memory."""


def _one_thread(fabric: DeviceSet) -> Iterator[Cell]:
    for node in fabric.with_cpus[:1]:
        yield _cell([Engine(host(node.index), "cpu", 1)])


def _all_threads(fabric: DeviceSet) -> Iterator[Cell]:
    nodes = fabric.with_cpus
    if nodes:
        yield _cell(Engine(host(node.index), "cpu", len(node.cpus)) for node in nodes)


def _cell(engines: Iterable[Engine]) -> Cell:
    transfers = tuple(Transfer(NULL, NULL, engine) for engine in engines)
    threads = sum(transfer.engine.count or 0 for transfer in transfers)
    return Cell(HOST_ROW, str(threads), transfers, Report.RATE, operation="primes")


PRIMES: tuple[Sweep, ...] = tuple(
    Sweep(
        name,
        f"primes up to 10,000 (sysbench cpu), {threads}(column)",
        cells,
        RATE,
        _NO_BYTES,
        f"{NO_CPU} by this process (cpuset)",
    )
    for name, threads, cells in (
        ("cpu_primes_single", "one thread", _one_thread),
        ("cpu_primes_all", "all threads", _all_threads),
    )
)

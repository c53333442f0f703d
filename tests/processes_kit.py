"""A tool started as several processes, each with a device: what it measures is made up."""

from __future__ import annotations

from contextlib import contextmanager
from types import SimpleNamespace

import msgspec
from msgspec.structs import replace

from fakes import device, machine
from linkgauge.benchmarks.table import DeviceSet
from linkgauge.compat import nvbandwidth as tool_module
from linkgauge.compat.base import Context
from linkgauge.model.result import CellResult, Part, Result, Run
from linkgauge.model.settings import Settings
from linkgauge.model.statistics import summarize
from linkgauge.model.transfer import Cell

SIZE = 512 << 20


def as_rank(monkeypatch, rank, size):
    """This process is what MPICH's mpiexec calls such a rank."""
    monkeypatch.delenv("OMPI_COMM_WORLD_RANK", raising=False)
    for name, number in (
        ("PMI_RANK", rank), ("PMI_SIZE", size), ("MPI_LOCALRANKID", rank), ("MPI_LOCALNRANKS", size)
    ):  # fmt: skip
        monkeypatch.setenv(name, str(number))


def of_processes(count, *, named=True):
    """So many processes, half of them on each of two hosts, whose devices count from 0."""
    each = (count + 1) // 2
    devices = tuple(
        replace(
            device(n % each, "cuda", pci=f"0000:{0x10 + n % each:02x}:00.0"),
            memory=f"cuda:{n % each}@{n}",
            driver="580.1 CUDA 13.0",
        )
        for n in range(count)
    )
    hosts = tuple("first" if n < each else "second" for n in range(count))
    return DeviceSet("cuda", machine().host.nodes, devices, hosts=hosts if named else ())


def measured(benchmark, figure):
    """`figure(name, cell, part)` is in GB/s, null where the cell fails."""
    cells = tuple(_measured(benchmark, cell, figure) for cell in benchmark.cells)
    skipped = "skip" if benchmark.reason else "pass"
    return Result(
        benchmark=benchmark.name, title=benchmark.title, backend=benchmark.backend, size=SIZE,
        unit="B/s", better="higher", parts=benchmark.parts, reason=benchmark.reason, cells=cells,
        status="error" if any(cell.status == "error" for cell in cells) else skipped,
    )  # fmt: skip


def _measured(benchmark, cell: Cell, figure):
    own = msgspec.structs.asdict(cell)
    numbers = range(len(benchmark.parts)) if benchmark.parts else range(len(cell.transfers))
    rates = [figure(benchmark.name, cell, number) for number in numbers]
    if None in rates:
        return CellResult(**own, status="error", reason="process 1 ended")
    rates = [rate * 1e9 for rate in rates]
    parts = tuple(Part(n, SIZE, (rate,), summarize([rate])) for n, rate in enumerate(rates))
    total = rates[0] if cell.report.is_first else sum(rates)
    return CellResult(
        **own, status="pass", samples=(total,), summary=summarize([total]),
        parts=parts if len(parts) > 1 else (),
    )  # fmt: skip


def start(monkeypatch, fabric, figure=lambda *_: 100.0):
    """nvbandwidth and the tools derived from it, as mpirun starts them."""

    @contextmanager
    def opened(where, settings, *, several):
        assert several is (len(fabric.devices) > 1)
        yield Context(SimpleNamespace(machine=machine()), fabric)

    def measure(context, benchmarks, *, observer):
        results = tuple(measured(benchmark, figure) for benchmark in benchmarks)
        for result in results:
            observer.completed(result)
        return Run(
            id="r", label="as", command=("linkgauge",), started="s", finished="f",
            machine=machine(), settings=Settings((SIZE,)), results=results,
        )  # fmt: skip

    monkeypatch.setattr(tool_module, "opened", opened)
    monkeypatch.setattr(tool_module, "measure", measure)
    as_rank(monkeypatch, 0, len(fabric.devices))

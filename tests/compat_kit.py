"""Another tool's command line through `linkgauge as`, on simulated machines and on made-up ones."""

from __future__ import annotations

import json
import shlex
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from msgspec.structs import replace

from command_kit import called
from fakes import device, machine
from linkgauge.cli import tool as base
from linkgauge.engine.plan import make_plan
from linkgauge.model.documents.result import CellResult, Result, Run, TransferFigure, worst
from linkgauge.model.ranks import Rank
from linkgauge.model.settings import Settings
from linkgauge.model.stats.summary import summarize
from linkgauge.uses import measuring

ONE = Path(__file__).parent / "data" / "test.yml"
ONE_DEVICE = ONE.read_text()
AGES = "2026-01-01T00:00:00Z", "2026-01-01T00:00:01Z"


def spoken(tool, words="", *more, on="ppu-8", faults=(), **environment):
    """What comes of the tool's own command line: a text as for a shell, then further arguments.
    `on` null is this machine."""
    own = [] if on is None else ["--machine", on]
    own += [word for fault in faults for word in ("--fault", fault)]
    arguments = [*shlex.split(str(words)), *map(str, more)]
    return called("as", *own, tool, *arguments, **environment)


def document(done) -> Any:
    """What stands under the only root of the JSON that a tool printed."""
    (root,) = json.loads(done.stdout).values()
    return root


def two_devices(folder):
    """The description of two devices on PCIe."""
    file = folder / "test.yml"
    two = ONE_DEVICE.replace("count: 1, model", "count: 2, model")
    file.write_text(two.replace("each: sim:0,", "each: sim:0..1,"))
    return file


class MadeUp:
    """Takes the place of measuring: `result(cell, settings, table)` is what comes of a cell. After
    so many `cells`, Ctrl-C."""

    def __init__(self, result, cells=None):
        self.result, self.left = result, cells
        self.settings, self.works = [], []

    def install(self, monkeypatch, box=None):
        """For the next command, on this machine if any."""

        def measure(session, plan, observer):
            return self.run(session, plan, observer)

        @contextmanager
        def opened(request):
            yield SimpleNamespace(
                request=request,
                machine=box,
                plan_of=lambda rows, sizes=None, first=0: make_plan(
                    rows, box, sizes or request.settings.sizes, first=first
                ),
                measure=lambda plan, observer: self.run(
                    SimpleNamespace(request=request, machine=box), plan, observer
                ),
            )

        monkeypatch.setattr(base.Session, "measure", measure)
        if box is not None:
            monkeypatch.setattr(measuring, "opened_by_launch", opened)

    def run(self, session, plan, observer):
        settings = session.request.settings
        self.settings.append(settings)
        results = []
        for table in plan:
            if self.left == 0:
                break
            cells = tuple(self._cells(table, settings, observer))
            more = {name: getattr(table, name) for name in (
                "benchmark", "title", "backend", "size", "unit", "better", "sweep", "parts",
                "simulated", "reason")}  # fmt: skip
            status = "skip" if table.reason else worst(cell.status for cell in cells)
            results.append(Result(**more, status=status, cells=cells))
            if len(cells) == len(table.cells):
                observer.completed(results[-1])
        return Run(
            id="a", label="as", command=(), started=AGES[0],
            finished=None if self.left == 0 else AGES[1], machine=session.machine,
            settings=Settings(sizes=(1,)), results=tuple(results),
        )  # fmt: skip

    def _cells(self, table, settings, observer):
        for cell in table.cells:
            if self.left == 0:
                return
            self.left = None if self.left is None else self.left - 1
            self.works.append(cell.operation)
            found = self.result(cell, settings, table)
            observer.finished(found)
            yield found


def rated(figure=lambda *_: 100.0):
    """Results of GB/s, `figure(name, cell, part)`: null where the cell fails."""

    def result(cell, settings, table):
        own = {name: getattr(cell, name) for name in ("row", "column", "transfers", "report")}
        count = len(table.parts or cell.transfers)
        rates = [figure(table.benchmark, cell, number) for number in range(count)]
        if None in rates:
            return CellResult(**own, status="error", reason="process 1 ended")
        rates = [rate * 1e9 for rate in rates]
        total = rates[0] if cell.report.is_first else sum(rates)
        parts = [
            TransferFigure(n, table.size, (rate,), summarize([rate]))
            for n, rate in enumerate(rates)
        ]
        return CellResult(
            **own, status="pass", bytes=table.size, samples=(total,), summary=summarize([total]),
            parts=tuple(parts) if count > 1 else (),
        )  # fmt: skip

    return result


def as_rank(monkeypatch, rank, size):
    """This process is what MPICH's mpiexec calls such a rank."""
    monkeypatch.delenv("OMPI_COMM_WORLD_RANK", raising=False)
    for name, number in (
        ("PMI_RANK", rank), ("PMI_SIZE", size), ("MPI_LOCALRANKID", rank), ("MPI_LOCALNRANKS", size)
    ):  # fmt: skip
        monkeypatch.setenv(name, str(number))


def of_processes(count):
    """The machine of so many processes, half of them on each of two hosts, whose devices count
    from 0."""
    each = (count + 1) // 2
    devices = tuple(
        replace(
            device(n % each, "cuda", pci=f"0000:{0x10 + n % each:02x}:00.0"),
            memory=f"cuda:{n % each}@{n}", driver="580.1 CUDA 13.0", memory_bytes=1 << 34,
        )
        for n in range(count)
    )  # fmt: skip
    hosts = ["first" if n < each else "second" for n in range(count)]
    ranks = tuple(
        Rank(n, f"{host}.example", 100 + n, one.memory)
        for n, (host, one) in enumerate(zip(hosts, devices, strict=True))
    )
    return replace(machine(), devices={"cuda": devices}, ranks=ranks)

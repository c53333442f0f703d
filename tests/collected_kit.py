"""Collectives as values: what backends would measure, with times that a test sets."""

from __future__ import annotations

from msgspec.structs import replace

from linkgauge.engine.plan import make_plan
from linkgauge.model.notes import Remark
from linkgauge.model.result import CellResult, RankTimes, Result, Run, worst
from linkgauge.model.settings import Settings
from linkgauge.model.statistics import summarize

LATENCY, RATE = 12e-6, 320e9


def model_seconds(work, size, ranks):
    """Seconds of one collective."""
    return LATENCY + work.bytes_on_bus(size, ranks) / RATE


def measured(cell, seconds, *, wrong=0, iterations=(), samples=None, verify=True):
    """The result of a cell of these seconds."""
    work = cell.operation
    checked = verify and work.is_checked
    found = samples or (seconds,)
    size = cell.transfers[0].bytes_moved(1)
    ranks = len(work.groups(len(cell.transfers))[0])
    return CellResult(
        cell.row, cell.column, cell.transfers, cell.report,
        "fail" if checked and wrong else "pass",
        f"{wrong} elements are wrong, first element 3 of rank 1" if checked and wrong else None,
        bytes=work.bytes_counted(size, ranks), loops=20, stopped="samples",
        verified=not wrong if checked else None, samples=found, summary=summarize(found),
        kind="wrong-bytes" if checked and wrong else None, operation=work,
        wrong=wrong if checked else None,
        iterations=tuple(
            RankTimes(rank, tuple(own), summarize(own)) for rank, own in enumerate(iterations)
        ),
    )  # fmt: skip


def unmeasured(cell, status, reason, kind="unsupported"):
    return CellResult(
        cell.row, cell.column, cell.transfers, cell.report, status, reason, kind=kind,
        operation=cell.operation,
    )  # fmt: skip


class Fake:
    """Takes the place of `base.measure`: `seconds(cell, size, ranks)` is what a collective takes;
    `change(cell, result)` is what comes of it. After `cells` of them, Ctrl-C."""

    def __init__(self, seconds=None, change=None, cells=None):
        self.seconds = seconds or (lambda cell, size, ranks: model_seconds(
            cell.operation, size, ranks))  # fmt: skip
        self.change = change or (lambda cell, result: result)
        self.left = cells
        self.settings = []
        self.works = []

    def __call__(self, context, benchmarks, *, sizes=None, first=0, observer=None):
        self.settings.append(context.settings)
        plan = make_plan(benchmarks, context.machine, sizes, first=first)
        results = []
        for sheet in plan:
            done = []
            for cell in sheet.cells:
                if self.left == 0:
                    break
                self.left = None if self.left is None else self.left - 1
                self.works.append(cell.operation)
                done.append(self._cell(cell, context.settings))
                observer.finished(done[-1])
            status = worst(cell.status for cell in done)
            more = {name: getattr(sheet, name) for name in ("benchmark", "title", "backend",
                    "size", "unit", "better", "sweep", "simulated")}  # fmt: skip
            results.append(Result(**more, status=status, cells=tuple(done)))
        finished = None if self.left == 0 else "2026-01-01T00:00:01Z"
        return Run(
            id="a", label="as", command=(), started="2026-01-01T00:00:00Z", finished=finished,
            machine=context.machine, settings=Settings(sizes=(1,)), results=tuple(results),
        )  # fmt: skip

    def _cell(self, cell, settings):
        if cell.reason is not None:
            return unmeasured(cell, "skip", cell.reason)
        size, ranks = cell.transfers[0].bytes_moved(1), len(cell.transfers)
        group = len(cell.operation.groups(ranks)[0])
        seconds = self.seconds(cell, size, group)
        single = [[seconds * (1 + 0.1 * (n % 3) - 0.01 * rank) for n in range(8)]
                  for rank in range(ranks)]  # fmt: skip
        result = measured(cell, seconds, iterations=single, verify=settings.verify)
        return self.change(cell, result)


def with_wrong(result, wrong):
    """The same with so many wrong elements."""
    return replace(
        result, status="fail", wrong=wrong, verified=False, kind="wrong-bytes",
        reason=f"{wrong} elements are wrong, first element 3 of rank 1",
    )  # fmt: skip


def with_remark(result, text):
    return replace(result, notes=(Remark(text),))

"""Cells as a run shows them, measured by a worker in this process on backends of a test's own."""

from types import SimpleNamespace

from fakes import machine
from linkgauge.engine.controller import Observer
from linkgauge.engine.kept.journal import MeasuredRepetition, Opened, assemble
from linkgauge.engine.request import RunRequest, Selection
from linkgauge.engine.session import Session
from linkgauge.engine.workers.worker import LocalWorker
from linkgauge.model.documents.result import CellResult, PlannedCell, PlannedTable
from linkgauge.model.notation import parse_transfers
from linkgauge.model.settings import Settings
from linkgauge.model.transfer import Report

FIXED = Settings((1,), samples=1)
SMALL = Settings((4096,))


def worker_with(settings=FIXED, on_phase=lambda phase: None, available=1 << 34, **backends):
    """A worker that has these backends, on a host with so much memory available."""
    worker = LocalWorker(settings, on_phase)
    worker._backends.update(backends)
    worker.host = machine(available=available).host
    return worker


def whole(*repetitions, settings=FIXED):
    """One cell from its repetitions; nothing is equivalent."""
    first = repetitions[0]
    cell = PlannedCell(
        first.row, first.column, first.transfers, first.report, operation=first.operation
    )
    table = PlannedTable(
        benchmark="b", title="B", backend="fake", size=64, unit="B/s", better="higher",
        cells=(cell,),
    )  # fmt: skip
    opened = Opened(
        id="1", label="l", command=(), started="s", machine=machine(), settings=settings,
        plan=(table,),
    )  # fmt: skip
    run = assemble((opened, *(MeasuredRepetition(0, repetition) for repetition in repetitions)))
    return run.results[0].cells[0]


def plan_of(here, *names, settings=SMALL, what=None, **more):
    """What a session plans for these benchmarks on a machine."""
    request = RunRequest(what=what or Selection(names), settings=settings, **more)
    workers = SimpleNamespace(survey=lambda backends: here)
    return Session(request, workers).plan(Observer())


def planned(column, transfer="fake:0 -> fake:1 by ce", **more):
    return PlannedCell("0", column, parse_transfers(transfer), Report.FIRST, **more)


def table(*cells, name="b"):
    return PlannedTable(
        benchmark=name, title="t", backend="fake", size=64, unit="B/s", better="higher",
        cells=cells,
    )  # fmt: skip


def repeated(cell, *samples, seconds=0.06, status="pass"):
    return CellResult(
        cell.row, cell.column, cell.transfers, cell.report, status, samples=samples,
        repetitions=((1,) * len(samples),) if samples else (), seconds=seconds,
    )  # fmt: skip

"""Cells as a run shows them, measured by a worker in this process on backends of a test's own."""

from fakes import machine
from linkgauge.engine.journal import Measured, Opened, assemble
from linkgauge.engine.worker import LocalWorker
from linkgauge.model.result import PlannedCell, PlannedSheet
from linkgauge.model.settings import Settings

FIXED = Settings((1,), samples=1)


def worker_with(settings=FIXED, on_phase=lambda phase: None, available=1 << 34, **backends):
    """A worker that has these backends, on a host with so much memory available."""
    worker = LocalWorker(settings, on_phase)
    worker._backends.update(backends)
    worker.host = machine(available=available).host
    return worker


def whole(*visits, settings=FIXED):
    """One cell from its visits; nothing is alike."""
    first = visits[0]
    cell = PlannedCell(
        first.row, first.column, first.transfers, first.report, operation=first.operation
    )
    sheet = PlannedSheet(
        benchmark="b", title="B", backend="fake", size=64, unit="B/s", better="higher",
        cells=(cell,),
    )  # fmt: skip
    opened = Opened(
        id="1", label="l", command=(), started="s", machine=machine(), settings=settings,
        plan=(sheet,),
    )  # fmt: skip
    run = assemble((opened, *(Measured(0, visit) for visit in visits)))
    return run.results[0].cells[0]

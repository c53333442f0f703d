"""Drives a run: hands cells to the worker one by one and journals each before the next."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from itertools import groupby
from typing import Protocol

from linkgauge.model.result import CellResult, PlannedCell, PlannedSheet, Result, Run

from .journal import Closed, Measured, Opened, Record, assemble, result_of
from .worker import Worker

Sink = Callable[[Record], None]


class Observer(Protocol):
    """Who is told of the run's progress."""

    def started(self, sheet: PlannedSheet, cell: PlannedCell) -> None: ...
    def finished(self, cell: CellResult, /) -> None: ...
    def completed(self, result: Result) -> None: ...


def now() -> str:
    """The time of day, UTC, ISO 8601."""
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def execute(opened: Opened, worker: Worker, sink: Sink, observer: Observer) -> Run:
    """Measures the whole plan. Ctrl-C ends it with what was measured: `finished` is then null.

    Raises ResultsError where the journal cannot be written.
    """
    records: list[Record] = []

    def keep(record: Record) -> None:
        sink(record)
        records.append(record)

    keep(opened)
    try:
        for number, sheet in enumerate(opened.plan):
            cells: list[CellResult] = []
            for together in _together(sheet.cells):
                observer.started(sheet, together[0])
                for cell in worker.measure(together, sheet.size, opened.settings):
                    cells.append(cell)
                    keep(Measured(number, cell))
                    observer.finished(cell)
            observer.completed(result_of(sheet, tuple(cells)))
        keep(Closed(now()))
    except KeyboardInterrupt:
        pass  # what was measured is kept; the caller sees that the run has no end
    return assemble(records)


def _together(cells: Sequence[PlannedCell]) -> Iterator[tuple[PlannedCell, ...]]:
    """Cells that are measured at the same time: those of a round, else each alone."""
    for number, of_round in groupby(cells, lambda cell: cell.round):
        if number is None:
            yield from ((cell,) for cell in of_round)
        else:
            yield tuple(of_round)

"""Drives a run: hands cells to the worker one by one and journals each before the next."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from itertools import groupby
from typing import Protocol

from linkgauge.model.result import CellResult, PlannedCell, PlannedSheet, Result, Run

from .interrupts import Interrupts
from .journal import (
    Closed,
    Measured,
    Record,
    assemble,
    cells_by_sheet,
    cells_left,
    opening,
    result_of,
)
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


def execute(records: Sequence[Record], worker: Worker, sink: Sink, observer: Observer) -> Run:
    """Measures what of the plan these records do not tell of yet: the plan itself is the first.
    Ctrl-C ends it with what was measured: `finished` is then null.

    Raises ResultsError where the journal cannot be written.
    """
    opened = opening(records)
    known = list(records)
    done = cells_by_sheet(records)
    left = cells_left(records)

    interrupts = Interrupts()

    def keep(record: Record) -> None:
        with interrupts.held():  # run.json is to have what the journal has
            sink(record)
            known.append(record)

    try:
        with interrupts:
            for number, sheet in enumerate(opened.plan):
                cells = done.get(number, [])
                for together in _together(left[number]):
                    observer.started(sheet, together[0])
                    for cell in worker.measure(together, sheet.size):
                        keep(Measured(number, cell))
                        cells.append(cell)
                        observer.finished(cell)
                observer.completed(result_of(sheet, cells))
            keep(Closed(now(), worker.look(tuple(opened.machine.devices))))
    except KeyboardInterrupt:
        pass  # what was measured is kept; the caller sees that the run has no end
    return assemble(known)


def _together(cells: Sequence[PlannedCell]) -> Iterator[tuple[PlannedCell, ...]]:
    """Cells that are measured at the same time: those of a round, else each alone."""
    for number, of_round in groupby(cells, lambda cell: cell.round):
        if number is None:
            yield from ((cell,) for cell in of_round)
        else:
            yield tuple(of_round)

"""Drives a run: hands cells to the worker one by one, pass by pass, and journals each visit before
the next."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from datetime import UTC, datetime
from itertools import groupby

from linkgauge.backends.protocol import Tried
from linkgauge.model.machine import Machine
from linkgauge.model.result import CellResult, PlannedCell, PlannedSheet, Result, Run
from linkgauge.model.units import count_of

from .interrupts import Interrupts
from .journal import (
    Again,
    Closed,
    Measured,
    Record,
    assemble,
    follow,
    opening,
    result_of,
    visits_of,
)
from .supervisor import Supervisor
from .visits import CellAt, Visits

Sink = Callable[[Record], None]
Doubts = Callable[[Run], Collection[CellAt]]
"""Of a run that is measured, the cells that are visited once more before it ends."""


class Observer:
    """Who follows a run; what it does not override, it does not care for."""

    def begun(self, machine: Machine) -> None:
        """Cells of this machine are about to be measured."""

    def planned(self, visits: int) -> None:
        """A pass begins: so many visits are to come, as far as can be foreseen."""

    def started(self, sheet: PlannedSheet, cell: PlannedCell) -> None:
        """The first of those measured at once."""

    def finished(self, cell: CellResult, /) -> None:
        """A visit."""

    def completed(self, result: Result) -> None:
        """Only a doubt will change this result any more."""

    def tried(self, tried: Tried) -> None:
        """While devices are tuned."""

    def say(self, line: str) -> None:
        """Something a person should know."""


def now() -> str:
    """The time of day, UTC, ISO 8601."""
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def execute(
    records: Sequence[Record],
    worker: Supervisor,
    sink: Sink,
    observer: Observer,
    doubts: Doubts = lambda run: (),
) -> Run:
    """Measures what of the plan these records do not tell of yet: the plan itself is the first.
    What is then in doubt is visited once more, unless the records tell that it was to be. Ctrl-C
    ends it with what was measured: `finished` is then null.

    Raises ResultsError where the journal cannot be written.
    """
    opened = opening(records)
    known = list(records)
    visits = visits_of(records)
    interrupts = Interrupts()

    def keep(record: Record) -> None:
        with interrupts.held():  # run.json is to have what the journal has
            sink(record)
            known.append(record)
            follow(visits, record)

    def measure_what_is_left() -> None:
        shown = _show(0, opened.plan, visits, observer)
        while any(left := visits.left()):
            observer.planned(visits.count_left())
            for number in _order(len(left), visits.turn):
                sheet = opened.plan[number]
                for together in _together(left[number]):
                    observer.started(sheet, together[0])
                    visit = visits.visit(number, together[0])
                    for cell in worker.measure(together, sheet.size, visit):
                        keep(Measured(number, cell))
                        observer.finished(cell)
                shown = _show(shown, opened.plan, visits, observer)

    try:
        with interrupts:
            measure_what_is_left()
            settled = any(isinstance(record, Again) for record in known)
            if not settled and (cells := doubts(assemble(known, visits))):
                observer.say(f"measuring {count_of(len(cells))} once more")
                keep(Again(tuple(cells)))
                measure_what_is_left()
            keep(Closed(now(), worker.look(tuple(opened.machine.devices))))
    except KeyboardInterrupt:
        pass  # what was measured is kept; the caller sees that the run has no end
    return assemble(known, visits)


def _order(sheets: int, turn: int) -> Sequence[int]:
    """The second pass goes backwards, so that what drifts with time is no property of a sheet;
    later ones are the last of most cells, whose results are wanted in the plan's order."""
    return range(sheets)[:: -1 if turn == 1 else 1]


def _show(shown: int, plan: Sequence[PlannedSheet], visits: Visits, observer: Observer) -> int:
    """Hands over the results that are whole, in the plan's order. Returns how many there are."""
    while shown < len(plan) and visits.is_whole(shown):
        observer.completed(result_of(plan[shown], visits.cells(shown)))
        shown += 1
    return shown


def _together(cells: Sequence[PlannedCell]) -> Iterator[tuple[PlannedCell, ...]]:
    """Cells that are measured at the same time: those of a round, else each alone."""
    for number, of_round in groupby(cells, lambda cell: cell.round):
        if number is None:
            yield from ((cell,) for cell in of_round)
        else:
            yield tuple(of_round)

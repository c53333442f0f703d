"""Checks that the records of a journal fit the plan in its first record."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from linkgauge.model.documents.result import CellResult, PlannedCell, PlannedTable
from linkgauge.model.errors import InputError
from linkgauge.model.transfer import Place
from linkgauge.model.units import LONGEST


class Fitting:
    """Checks repetitions against a plan, and against earlier repetitions of the same cell."""

    def __init__(self, plan: Sequence[PlannedTable]) -> None:
        self._plan = plan
        self._cells = [{cell.place: cell for cell in table.cells} for table in plan]
        self._counts: dict[tuple[int, Place], tuple[int, int]] = {}

    def planned(self, table: int, place: Place) -> PlannedCell:
        """Returns the cell at this place. Raises InputError if the plan has no such cell."""
        count = len(self._plan)
        if not 0 <= table < count:
            raise InputError(f"its table is {table}, and the plan has {count}")
        if place not in self._cells[table]:
            name = f"[{place.row}, {place.column}]"
            raise InputError(f"{self._plan[table].benchmark} has no cell {name} in the plan")
        return self._cells[table][place]

    def check(self, table: int, cell: CellResult, at: float | None = None) -> None:
        """Raises InputError if a cell's repetition does not fit the plan or earlier repetitions, or
        fails `check_figures`. `at` is how many seconds the run had measured then."""
        planned = self.planned(table, cell.place)
        if len(cell.transfers) != len(planned.transfers):
            own, its = len(cell.transfers), len(planned.transfers)
            raise InputError(f"it has {own} transfers, and its cell in the plan has {its}")
        if at is not None and not 0 <= at <= LONGEST:
            raise InputError(f"it was measured {at:g} seconds after the run began")
        check_figures(cell)
        if cell.status in ("pass", "fail"):
            counts = len(cell.parts), len(cell.iterations)
            before = self._counts.setdefault((table, cell.place), counts)
            if counts != before:
                raise InputError(
                    f"it has {counts[0]} parts and the figures of {counts[1]} ranks, an earlier "
                    f"repetition of this cell has {before[0]} and {before[1]}"
                )


def check_figures(cell: CellResult) -> None:
    """Raises InputError if a cell's counts of samples, parts and iterations disagree."""
    for problem in _disagreements(cell):
        raise InputError(problem)


def _disagreements(cell: CellResult) -> Iterator[str]:
    count, transfers = len(cell.samples), len(cell.transfers)
    gates = [gate for repetition in cell.repetitions for gate in repetition]
    if any(gate < 1 for gate in gates) or (cell.repetitions and sum(gates) != count):
        yield f"its repetitions have {sum(gates)} samples, and it has {count}"
    for part in cell.parts:
        if len(part.samples) != count:
            yield f"a part of it has {len(part.samples)} samples, and it has {count}"
        if not 0 <= part.transfer < transfers:
            yield f"a part of it is of transfer {part.transfer}, and it has {transfers}"
    if len({len(times.samples) for times in cell.iterations}) > 1:
        yield "its ranks have different numbers of iterations"

"""Measures some cells of an earlier run again, with the settings of that run."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from pathlib import Path

from msgspec.structs import replace

from linkgauge.engine.controller import Observer
from linkgauge.engine.plan import Plan
from linkgauge.engine.request import RunRequest, Selection
from linkgauge.engine.session import opened
from linkgauge.model.by_name import by_name
from linkgauge.model.cell_id import CellId, numbered
from linkgauge.model.documents.result import (
    CellResult,
    PlannedCell,
    PlannedTable,
    Run,
)
from linkgauge.model.errors import InputError
from linkgauge.model.settings import Settings

from .journal import read_opening
from .resume import check_same_machine

AGAIN = "-again"
"""The end of the label of a run that measures cells again."""


def measure_again(
    run: Run,
    path: Path | None,
    cells: Collection[CellId],
    number: int,
    out: Path,
    *,
    wait: bool = False,
) -> tuple[Run, Path | None]:
    """Measures these cells of `run` again, and stores the new run below `out`. `path` is where
    `run` is stored, or None. `number` counts the new runs from 1. Raises what `Session.measure`
    raises, and InputError if `run` is of another machine, of several ranks or under a profiler."""
    if run.machine.ranks:
        raise InputError(f"{run.label} {run.id} is of several ranks: its cells are not re-measured")
    if run.settings.profiler is not None:
        raise InputError(f"{run.label} {run.id} was measured under a profiler")
    settings = _reseeded(run.settings, number)
    request = RunRequest(
        what=Selection(),
        settings=settings,
        backends=tuple(run.machine.devices) + tuple(run.machine.unavailable) or ("host",),
        label=f"{run.label}{AGAIN}",
        command=run.command,
        out=str(out),
        wait=wait,
    )
    plan = tuple(_only(_plan_of(run, path), cells))
    with opened(request) as session:
        check_same_machine(run.machine, session.machine)
        return session.measure(plan, Observer()), session.folder


def _reseeded(settings: Settings, number: int) -> Settings:
    draw = settings.simulation.draw if settings.simulation is not None else 0
    return replace(settings, soak=None).simulating(draw=draw + 1_000_003 * number)


def _plan_of(run: Run, path: Path | None) -> Plan:
    if path is None:
        return tuple(_tables(run))
    folder = path if path.is_dir() else path.parent
    try:
        return read_opening(folder).plan
    except (OSError, InputError):
        return tuple(_tables(run))


def _tables(run: Run) -> Iterator[PlannedTable]:
    number = 0
    for result in run.results:
        cells = [_planned(cell, number + at) for at, cell in enumerate(result.cells)]
        number += len(cells)
        yield by_name(PlannedTable, result, cells=tuple(cells))


def _planned(cell: CellResult, number: int) -> PlannedCell:
    return by_name(PlannedCell, cell, reason=None, round=None, number=number)


def _only(plan: Plan, wanted: Collection[CellId]) -> Iterator[PlannedTable]:
    keys = set(wanted)
    for table, own, repeat in numbered(plan):
        asked = [cell for cell in table.cells if own.cell(cell.place, repeat) in keys]
        rounds = {cell.round for cell in asked} - {None}
        chosen = tuple(cell for cell in table.cells if cell in asked or cell.round in rounds)
        # A benchmark that comes several times keeps its number by being there, without cells.
        if chosen or repeat < max((key.repeat for key in keys if key.table == own), default=0):
            yield replace(table, cells=chosen)

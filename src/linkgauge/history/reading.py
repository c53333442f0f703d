"""Reads the history: lists of runs, series of figures, earlier runs to judge a later one by."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import msgspec
from msgspec.structs import asdict
from sqlalchemy import ColumnElement, Connection, Select, func, select

from linkgauge.engine.folder import slug
from linkgauge.model.cell_id import sheet_id
from linkgauge.model.figure import Figure, SeriesId
from linkgauge.model.history import EarlierRun, History, PastRun, Point, Series
from linkgauge.model.settings import Settings
from linkgauge.model.transfer import Place

from .records import Measured, began, machine_row, moment_of, setup_row
from .store import Store, in_parts
from .tables import (
    STATUSES,
    VERDICTS,
    cells,
    facts,
    figures,
    machines,
    results,
    runs,
    setups,
    sheets,
)
from .typed import (
    BenchmarkRow,
    CellRow,
    FactRow,
    FigureRow,
    PointRow,
    RunRow,
    SettingsRow,
    SetupRow,
    typed,
)

PASS = STATUSES.index("pass")


class Filter(msgspec.Struct, frozen=True, kw_only=True):
    """Which runs: of a host, a label, an accelerator (a part of its model's name), those that
    measured all of the benchmarks, and those that began from `since` on and before `until`
    (microseconds). With `last`, the latest of them."""

    host: str | None = None
    label: str | None = None
    accelerator: str | None = None
    benchmarks: tuple[str, ...] = ()
    since: int | None = None
    until: int | None = None
    last: int | None = None


def runs_of(store: Store, which: Filter) -> tuple[PastRun, ...]:
    """The runs, the latest first. Raises StoreError."""
    with store.reading() as connection:
        found = _runs(connection, _where(connection, which), which.last)
        names = _benchmarks(connection, found)
    return tuple(msgspec.structs.replace(run, benchmarks=names[run.number]) for run in found)


def histories_of(
    store: Store, benchmark: str, places: Sequence[Place], which: Filter
) -> tuple[History, ...]:
    """The figures of a benchmark's cells, or of those at some places, one history for each machine
    and setup: the oldest run first. Runs under a profiler, and those that were interrupted, are
    left out, as are cells that did not pass. Raises StoreError."""
    with store.reading() as connection:
        wanted = [sheets.c.benchmark == benchmark]
        named = {
            row.id: row
            for row in typed(CellRow, connection.execute(_select_cells().where(*wanted)))
            if not places or Place(row.row, row.column) in places
        }
        which = msgspec.structs.replace(which, benchmarks=(benchmark,))
        where = [
            *_where(connection, which), runs.c.finished.is_not(None), runs.c.profiled.is_(False),
        ]  # fmt: skip
        found = {run.number: run for run in reversed(_runs(connection, where, which.last))}
        points = _points(connection, list(named), found)
        groups = defaultdict[tuple[int, str], list[PastRun]](list)
        for run in found.values():
            groups[run.machine, run.setup].append(run)
        histories = [_history(connection, group, named, points) for group in groups.values()]
    return tuple(history for history in histories if history.series)


def _points(
    connection: Connection, wanted: Sequence[int], found: Iterable[int]
) -> dict[int, dict[int, Point]]:
    """By cell and run."""
    known = set(found)
    points: dict[int, dict[int, Point]] = {}
    columns = (figures.c.cell_id, figures.c.run_id, figures.c.figure, figures.c.low, figures.c.high)
    for some in in_parts(wanted):
        asked = select(*columns).where(
            figures.c.cell_id.in_(some),
            figures.c.status == PASS,
            figures.c.figure.is_not(None),
        )
        for row in typed(PointRow, connection.execute(asked)):
            if row.run_id in known:
                point = Point(row.run_id, row.figure, row.low, row.high)
                points.setdefault(row.cell_id, {})[row.run_id] = point
    return points


def _history(
    connection: Connection,
    group: Sequence[PastRun],
    named: dict[int, CellRow],
    points: dict[int, dict[int, Point]],
) -> History:
    series = []
    for number, row in named.items():
        by_run = points.get(number, {})
        own = tuple(by_run[run.number] for run in group if run.number in by_run)
        if own:
            series.append(
                Series(**asdict(_cell_of(row)), unit=row.unit, better=row.better, points=own)
            )
    first = group[0]
    asked = select(setups.c.document).where(setups.c.digest == bytes.fromhex(first.setup))
    (setup,) = typed(SetupRow, [connection.execute(asked).one()])
    return History(
        host=first.host,
        accelerators=first.accelerators,
        simulated=first.simulated,
        settings=msgspec.json.decode(setup.document, type=dict[str, str]),
        runs=tuple(group),
        states=_states(connection, {run.state for run in group}),
        series=tuple(sorted(series, key=lambda one: _in_order(one.cell))),
    )


def _in_order(cell: SeriesId) -> tuple[object, ...]:
    place = (cell.row, cell.column)
    numbers = ((int(text), "") if text.isdecimal() else (1 << 62, text) for text in place)
    return (*cell.sheet, *numbers, cell.transfers, cell.definition, cell.repeat)


def _states(connection: Connection, numbers: Iterable[int]) -> dict[int, dict[str, str]]:
    found: dict[int, dict[str, str]] = {number: {} for number in numbers}
    for some in in_parts(list(found)):
        asked = select(facts).where(facts.c.state_id.in_(some))
        for fact in typed(FactRow, connection.execute(asked)):
            found[fact.state_id][fact.name] = fact.value
    return found


def earlier_runs(
    store: Store, run: Measured, *, label: str | None = None, last: int | None = None
) -> tuple[EarlierRun, ...]:
    """The whole runs of the same machine under the same setup that began before this one, with all
    of their cells, the latest first: those of a label, or all; the `last` of them, or all. Runs
    under a profiler are left out. Raises StoreError."""
    where = [
        machines.c.digest == machine_row(run.machine)["digest"],
        setups.c.digest == setup_row(run.settings)["digest"],
        runs.c.started < began(run),
        runs.c.finished.is_not(None),
        runs.c.profiled.is_(False),
    ]
    if label is not None:
        where.append(runs.c.label == label)
    with store.reading() as connection:
        found = _runs(connection, where, last)
        numbers = [one.number for one in found]
        by_run, settings = _figures(connection, numbers), _settings(connection, numbers)
        states = _states(connection, {one.state for one in found})
    return tuple(
        EarlierRun(one, tuple(by_run.get(one.number, ())), settings[one.number], states[one.state])
        for one in found
    )


def _settings(connection: Connection, numbers: Sequence[int]) -> dict[int, Settings]:
    found: dict[int, Settings] = {}
    for some in in_parts(numbers):
        asked = select(runs.c.id, runs.c.settings).where(runs.c.id.in_(some))
        for row in typed(SettingsRow, connection.execute(asked)):
            found[row.id] = msgspec.json.decode(row.settings, type=Settings)
    return found


def _figures(connection: Connection, numbers: Sequence[int]) -> dict[int, list[Figure]]:
    by_run: dict[int, list[Figure]] = {}
    names: dict[int, CellRow] = {}
    for some in in_parts(numbers):
        asked = select(figures).where(figures.c.run_id.in_(some))
        rows = typed(FigureRow, connection.execute(asked))
        missing = list({row.cell_id for row in rows} - names.keys())
        for few in in_parts(missing):
            found = typed(CellRow, connection.execute(_select_cells().where(cells.c.id.in_(few))))
            names |= {cell.id: cell for cell in found}
        for row in rows:
            by_run.setdefault(row.run_id, []).append(_figure_of(names[row.cell_id], row))
    return by_run


def _figure_of(cell: CellRow, row: FigureRow) -> Figure:
    return Figure(
        _cell_of(cell), cell.unit, cell.better, STATUSES[row.status], VERDICTS[row.verdict],
        row.figure, row.median, row.low, row.high, row.slow_p95, row.slow_p99, row.n,
    )  # fmt: skip


def _cell_of(row: CellRow) -> SeriesId:
    return SeriesId(
        *sheet_id(row), row.row, row.column, row.repeat, row.transfers, row.definition,
    )  # fmt: skip


def _select_cells() -> Select[Any]:
    of_sheet = sheets.c.benchmark, sheets.c.backend, sheets.c.size, sheets.c.unit, sheets.c.better
    return select(cells, *of_sheet).join(sheets, sheets.c.id == cells.c.sheet_id)


def _where(connection: Connection, which: Filter) -> list[ColumnElement[bool]]:
    where: list[ColumnElement[bool]] = []
    if which.label is not None:
        where.append(runs.c.label == which.label)
    if which.since is not None:
        where.append(runs.c.started >= which.since)
    if which.until is not None:
        where.append(runs.c.started < which.until)
    for benchmark in which.benchmarks:
        measured = (
            select(results.c.run_id).join(sheets, sheets.c.id == results.c.sheet_id)
            .where(sheets.c.benchmark == benchmark)
        )  # fmt: skip
        where.append(runs.c.id.in_(measured))
    if which.host is not None or which.accelerator is not None:
        found = connection.execute(select(machines))
        where.append(runs.c.machine_id.in_([row.id for row in found if _is_of(row, which)]))
    return where


def _is_of(machine: Any, which: Filter) -> bool:
    """`nvidia-h200`, `H200` and `NVIDIA H200` all name NVIDIA's H200."""
    if which.host is not None and machine.host != which.host:
        return False
    asked = slug(which.accelerator or "", "")
    return asked in slug(machine.accelerators, "")


_COLUMNS = (
    runs.c.id, runs.c.uid, runs.c.label, runs.c.started, runs.c.finished, runs.c.profile,
    runs.c.profiled, runs.c.status, runs.c.cells, runs.c.passed, runs.c.low, runs.c.path,
    runs.c.state_id, runs.c.machine_id, machines.c.host, machines.c.accelerators,
    machines.c.simulated, setups.c.digest,
)  # fmt: skip


def _select() -> Select[Any]:
    return (
        select(*_COLUMNS)
        .join(machines, machines.c.id == runs.c.machine_id)
        .join(setups, setups.c.id == runs.c.setup_id)
    )


def _runs(
    connection: Connection, where: Sequence[ColumnElement[bool]], last: int | None
) -> list[PastRun]:
    """The latest first."""
    order = runs.c.started.desc(), runs.c.id.desc()
    asked = _select().where(*where).order_by(*order).limit(last)
    return [_run_of(row) for row in typed(RunRow, connection.execute(asked))]


def _run_of(row: RunRow) -> PastRun:
    return PastRun(
        number=row.id,
        id=row.uid,
        label=row.label,
        host=row.host,
        accelerators=row.accelerators,
        started=moment_of(row.started),
        finished=None if row.finished is None else moment_of(row.finished),
        simulated=row.simulated,
        profiled=row.profiled,
        profile=row.profile,
        status=STATUSES[row.status],
        cells=row.cells,
        passed=row.passed,
        low=row.low,
        path=row.path,
        setup=row.digest.hex(),
        state=row.state_id,
        machine=row.machine_id,
    )


def _benchmarks(connection: Connection, found: Sequence[PastRun]) -> dict[int, tuple[str, ...]]:
    by_run = defaultdict[int, dict[str, None]](dict)
    for some in in_parts([run.number for run in found]):
        asked = (
            select(results.c.run_id, sheets.c.benchmark)
            .join(sheets, sheets.c.id == results.c.sheet_id)
            .where(results.c.run_id.in_(some)).order_by(results.c.run_id, results.c.number)
        )  # fmt: skip
        for row in typed(BenchmarkRow, connection.execute(asked)):
            by_run[row.run_id][row.benchmark] = None
    return {run.number: tuple(by_run[run.number]) for run in found}


def benchmarks_of(store: Store) -> tuple[str, ...]:
    """The names of all benchmarks that some run measured. Raises StoreError."""
    with store.reading() as connection:
        return tuple(connection.execute(select(sheets.c.benchmark).distinct()).scalars())


def latest_runs(store: Store, which: Filter, each: int) -> tuple[PastRun, ...]:
    """The latest runs, the last one first, at most `each` of a label on a host; those under a
    profiler are left out. Raises StoreError."""
    order = runs.c.started.desc(), runs.c.id.desc()
    group = machines.c.host, machines.c.simulated, runs.c.label
    with store.reading() as connection:
        where = [*_where(connection, which), runs.c.profiled.is_(False)]
        place = func.row_number().over(partition_by=group, order_by=order)
        ranked = (
            select(runs.c.id, place.label("place"))
            .join(machines, machines.c.id == runs.c.machine_id)
            .where(*where)
            .subquery()
        )
        first = select(ranked.c.id).where(ranked.c.place <= each)
        return tuple(_runs(connection, [runs.c.id.in_(first)], which.last))


def figures_of(store: Store, numbers: Sequence[int]) -> Iterator[tuple[int, Figure]]:
    """The figures of these runs, each behind its run's number. Raises StoreError."""
    with store.reading() as connection:
        for some in in_parts(numbers):
            asked = (
                _select_cells()
                .add_columns(figures)
                .join(figures, cells.c.id == figures.c.cell_id)
                .where(figures.c.run_id.in_(some))
            )
            for row in connection.execute(asked):
                (cell,), (figure,) = typed(CellRow, [row]), typed(FigureRow, [row])
                yield figure.run_id, _figure_of(cell, figure)

"""Reads the history: lists of runs, series of figures, and earlier runs to compare with."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import Any, TypeVar

import msgspec
from msgspec.structs import asdict, fields, replace
from sqlalchemy import ColumnElement, Connection, Select, and_, case, func, null, select

from linkgauge.model.by_name import by_name
from linkgauge.model.documents.history import (
    EarlierMedians,
    EarlierRun,
    Figure,
    History,
    PastCell,
    PastRun,
    Point,
    Series,
    SeriesId,
)
from linkgauge.model.documents.result import Run
from linkgauge.model.grouped import grouped, tabled
from linkgauge.model.transfer import Place, joined

from .records import ComparableRun, began, machine_row, microseconds, setup_row
from .store import Store, columns_of, rows_in
from .tables import KEPT, cells, facts, figures, machines, results, runs, setups, tables

_Kind = TypeVar("_Kind")
_Value = float | None
_Condition = ColumnElement[bool]
Equivalent = Callable[[dict[str, str], dict[str, str]], bool]
"""Whether two states of a machine are equivalent."""
_PointRow: Any = tuple[int, int, float, _Value, _Value]
_FigureRow: Any = tuple[(int, int, *(one.type for one in fields(Figure) if one.name in KEPT))]  # type: ignore[misc]
"""Rows of a figure: the numbers of the cell and the run, and then the fields of `Point` or `Figure`
in their order."""


def _of(kind: type[_Kind], rows: Iterable[Any]) -> list[_Kind]:
    found = list(rows)
    names = [str(name) for name in found[0]._fields] if found else []
    fields = [dict(zip(names, row, strict=True)) for row in found]
    return msgspec.convert(fields, list[kind])  # type: ignore[valid-type]


def _tuples(kind: type[_Kind], rows: Iterable[Any]) -> list[_Kind]:
    return msgspec.convert(list(map(tuple, rows)), list[kind])  # type: ignore[valid-type]


class Filter(msgspec.Struct, frozen=True, kw_only=True):
    """Selects runs. A field that is not set selects all. `accelerator` is a part of a model's name.
    `since` and `until` (exclusive) are in µs since 1970. `last` is how many latest runs to take."""

    host: str | None = None
    label: str | None = None
    accelerator: str | None = None
    benchmarks: tuple[str, ...] = ()
    since: int | None = None
    until: int | None = None
    last: int | None = None


def runs_of(store: Store, which: Filter) -> tuple[PastRun, ...]:
    """Returns the runs that match the filter, latest first. Raises StoreError."""
    with store.reading() as connection:
        found = _runs(connection, _where(connection, which), which.last)
        names = _benchmarks(connection, found)
    return tuple(replace(run, benchmarks=tuple(names.get(run.number, ()))) for run in found)


def number_of_runs(store: Store, which: Filter) -> int:
    """Returns how many runs match the filter, without regard to its `last`. Raises StoreError."""
    with store.reading() as connection:
        asked = select(func.count()).select_from(runs).where(*_where(connection, which))
        return int(connection.execute(asked).scalar_one())


def histories_of(
    store: Store, benchmark: str, places: Sequence[Place], which: Filter
) -> tuple[History, ...]:
    """Returns a history for each machine and setup, its oldest run first. Profiled and interrupted
    runs and failed cells are left out. If `places` is empty, all cells count. Raises StoreError."""
    with store.reading() as connection:
        wanted = [tables.c.benchmark == benchmark]
        named = {
            cell.number: cell
            for cell in _of(PastCell, connection.execute(_select_cells().where(*wanted)))
            if not places or cell.place in places
        }
        which = replace(which, benchmarks=(benchmark,))
        where = [
            *_where(connection, which), runs.c.finished.is_not(None), runs.c.profiled.is_(False),
        ]  # fmt: skip
        found = {run.number: run for run in reversed(_runs(connection, where, which.last))}
        points = _points(connection, list(named), found)
        groups = grouped(((run.machine, run.setup), run) for run in found.values())
        histories = [_history(connection, group, named, points) for group in groups.values()]
    return tuple(history for history in histories if history.series)


def _points(
    connection: Connection, wanted: Sequence[int], runs_found: Iterable[int]
) -> dict[int, dict[int, Point]]:
    known = set(runs_found)
    own = figures.c.cell_id, figures.c.run_id, figures.c.figure, figures.c.low, figures.c.high
    asked = select(*own).where(
        figures.c.status == "pass",
        figures.c.figure.is_not(None),
        figures.c.run_id.between(min(known, default=0), max(known, default=0)),
    )
    rows = rows_in(connection, asked, figures.c.cell_id, wanted)
    found = _tuples(_PointRow, rows)
    return tabled((cell, run, Point(run, *own)) for cell, run, *own in found if run in known)


def _history(
    connection: Connection,
    group: Sequence[PastRun],
    named: dict[int, PastCell],
    points: dict[int, dict[int, Point]],
) -> History:
    series = []
    for number, cell in named.items():
        by_run = points.get(number, {})
        own = tuple(by_run[run.number] for run in group if run.number in by_run)
        if own:
            series.append(by_name(Series, cell, points=own))
    first = group[0]
    asked = select(setups.c.document).where(setups.c.digest == first.setup)
    return by_name(
        History,
        first,
        settings=connection.execute(asked).scalar_one(),
        runs=tuple(group),
        states=_states(connection, {run.state for run in group}),
        series=tuple(sorted(series, key=lambda one: _in_order(one.cell))),
    )


def _in_order(cell: SeriesId) -> tuple[object, ...]:
    place = (cell.row, cell.column)
    numbers = ((int(text), "") if text.isdecimal() else (1 << 62, text) for text in place)
    return (*cell.table, *numbers, cell.transfers, cell.definition, cell.repeat)


def _states(connection: Connection, numbers: Iterable[int]) -> dict[int, dict[str, str]]:
    wanted = set(numbers)
    rows = rows_in(connection, select(facts), facts.c.state_id, wanted)
    found = tabled(_tuples(tuple[int, str, str], rows))
    return {number: found.get(number, {}) for number in wanted}


def earlier_runs(
    store: Store,
    run: ComparableRun,
    *,
    label: str | None = None,
    last: int | None = None,
    benchmarks: Collection[str] | None = None,
) -> tuple[EarlierRun, ...]:
    """Returns complete earlier runs of the same machine and setup, latest first. Profiled runs are
    left out, and so are runs before the last run that a user accepted. Raises StoreError."""
    with store.reading() as connection:
        where, _ = _before(connection, run)
        if label is not None:
            where.append(runs.c.label == label)
        rows = _rows(connection, where, last, runs.c.settings)
        found = _of(PastRun, rows)
        by_run = grouped(_figures(connection, [one.number for one in found], benchmarks))
        states = _states(connection, {one.state for one in found})
    return tuple(
        EarlierRun(one, tuple(by_run.get(one.number, ())), row.settings, states[one.state])
        for one, row in zip(found, rows, strict=True)
    )


def earlier_medians(
    store: Store, run: Run, last: int, equivalent: Equivalent, fewest: int = 1
) -> EarlierMedians | None:
    """Returns medians of the run's benchmarks in the latest earlier runs that count, at most `last`
    of them, and in worse runs after these. A run counts if it is complete, of the same machine and
    setup, and no worse than the runs before it (or accepted). If at least `fewest` runs that count
    are in a state `equivalent` to that of the latest one, the others are left out. Returns None if
    no run counts. Raises StoreError."""
    passed = case((and_(figures.c.status == "pass", figures.c.median > 0), figures.c.median))
    measured = figures.c.cell_id.in_(_cells_of({result.benchmark for result in run.results}))
    asked = select(figures.c.cell_id, figures.c.run_id, passed).where(measured)
    medians: dict[int, dict[int, float]] = {}
    with store.reading() as connection:
        where, counts = _before(connection, run)
        found = _of(PastRun, _rows(connection, [*where, counts], last))
        if not found:
            return None
        states = _states(connection, {one.state for one in found})
        latest = states[found[0].state]
        same = [one for one in found if equivalent(states[one.state], latest)]
        after = runs.c.started > microseconds(found[0].started)
        # Worse runs after the latest run that counts are added.
        low = _of(PastRun, _rows(connection, [*where, ~counts, after], last))
        counting = [*low, *(same if len(same) >= fewest else found)]
        numbers = {one.number: number for number, one in enumerate(counting, start=1)}
        rows = rows_in(connection, asked, figures.c.run_id, numbers)
        for cell, own, median in _tuples(tuple[int, int, _Value], rows):
            known = medians.setdefault(cell, {})
            if median is not None:
                known[numbers[own]] = median
        named = _named(connection, medians)
    # The place of a copy that a user specifies does not tell what it copies.
    copied = grouped(
        ((result.benchmark, cell.row, cell.column), joined(cell.transfers))
        for result in run.results for cell in result.cells
    )  # fmt: skip
    by_cell = [
        (cell, known) for number, known in medians.items() for cell in (named[number],)
        if cell.transfers
        in copied.get((cell.benchmark, cell.row, cell.column), (cell.transfers,))
    ]  # fmt: skip
    return EarlierMedians(len(numbers), latest, by_cell, len(low))


def _before(connection: Connection, run: ComparableRun) -> tuple[list[_Condition], _Condition]:
    """Returns the conditions for earlier runs, and the condition for runs that count: runs that
    were no worse than the runs before, or that began before a user last accepted a run."""
    machine = machines.c.digest == machine_row(run.machine)["digest"]
    setup = setups.c.digest == setup_row(run.settings)["digest"]
    where: list[_Condition] = [
        machine,
        setup,
        runs.c.started < began(run),
        runs.c.finished.is_not(None),
        runs.c.profiled.is_(False),
    ]
    if "accepted" not in columns_of(connection, runs):
        return where, runs.c.id.is_not(None)
    past = runs.alias()
    level = (
        past.c.accepted.is_not(None),
        past.c.machine_id == select(machines.c.id).where(machine).scalar_subquery(),
        past.c.setup_id == select(setups.c.id).where(setup).scalar_subquery(),
    )
    began_at, accepted_at = (
        func.coalesce(select(func.max(moment)).where(*level).scalar_subquery(), 0)
        for moment in (past.c.started, past.c.accepted)
    )
    counts = (func.coalesce(runs.c.lost, 0) == 0) | (runs.c.started < accepted_at)
    return [*where, runs.c.started >= began_at], counts


def _figures(
    connection: Connection, numbers: Sequence[int], benchmarks: Collection[str] | None = None
) -> Iterator[tuple[int, Figure]]:
    there = columns_of(connection, figures)
    kept = (figures.c[name] if name in there else null().label(name) for name in KEPT)
    asked = select(figures.c.cell_id, figures.c.run_id, *kept)
    if benchmarks is not None:
        asked = asked.where(figures.c.cell_id.in_(_cells_of(benchmarks)))
    rows = _tuples(_FigureRow, rows_in(connection, asked, figures.c.run_id, numbers))
    found = _named(connection, {cell for cell, *_ in rows})
    named = {number: {**asdict(of.cell), "unit": of.unit, "better": of.better}
             for number, of in found.items()}  # fmt: skip
    for cell, run, *values in rows:
        yield run, Figure(**named[cell], **dict(zip(KEPT, values, strict=True)))


def _cells_of(benchmarks: Collection[str]) -> Select[tuple[int]]:
    of = select(cells.c.id).join(tables, tables.c.id == cells.c.table_id)
    return of.where(tables.c.benchmark.in_(benchmarks))


def _named(connection: Connection, numbers: Iterable[int]) -> dict[int, PastCell]:
    found = _of(PastCell, rows_in(connection, _select_cells(), cells.c.id, numbers))
    return {cell.number: cell for cell in found}


def _select_cells() -> Select[Any]:
    of = (
        cells.c.id.label("number"), tables.c.benchmark, tables.c.backend, tables.c.size,
        tables.c.unit, tables.c.better, cells.c.row, cells.c.column, cells.c.transfers,
        cells.c.definition, cells.c.repeat,
    )  # fmt: skip
    return select(*of).join(tables, tables.c.id == cells.c.table_id)


def _where(connection: Connection, which: Filter) -> list[_Condition]:
    where: list[_Condition] = []
    if which.label is not None:
        where.append(runs.c.label == which.label)
    if which.since is not None:
        where.append(runs.c.started >= which.since)
    if which.until is not None:
        where.append(runs.c.started < which.until)
    for benchmark in which.benchmarks:
        measured = (
            select(results.c.run_id).join(tables, tables.c.id == results.c.table_id)
            .where(tables.c.benchmark == benchmark)
        )  # fmt: skip
        where.append(runs.c.id.in_(measured))
    if which.host is not None or which.accelerator is not None:
        found = connection.execute(select(machines))
        where.append(runs.c.machine_id.in_([row.id for row in found if _is_of(row, which)]))
    return where


def _is_of(machine: Any, which: Filter) -> bool:
    from linkgauge.engine.kept.folder import slug  # knows plans, which takes 60 ms

    if which.host is not None and machine.host != which.host:
        return False
    asked = slug(which.accelerator or "", "")
    return asked in slug(machine.accelerators, "")


_RUNS = (
    runs.c.id.label("number"), runs.c.uid.label("id"), runs.c.label, runs.c.started,
    runs.c.finished, runs.c.profile, runs.c.profiled, runs.c.status, runs.c.cells, runs.c.passed,
    runs.c.low, runs.c.path, runs.c.state_id.label("state"), runs.c.machine_id.label("machine"),
    machines.c.host, machines.c.accelerators, machines.c.simulated, setups.c.digest.label("setup"),
)  # fmt: skip


def _runs(connection: Connection, where: Sequence[_Condition], last: int | None) -> list[PastRun]:
    there = columns_of(connection, runs)
    more = (runs.c[name] for name in ("verdict", "lost", "accepted") if name in there)
    return _of(PastRun, _rows(connection, where, last, *more))


def _rows(
    connection: Connection, where: Sequence[_Condition], last: int | None, *more: ColumnElement[Any]
) -> Sequence[Any]:
    asked = (
        select(*_RUNS, *more)
        .join(machines, machines.c.id == runs.c.machine_id)
        .join(setups, setups.c.id == runs.c.setup_id)
        .where(*where)
        .order_by(runs.c.started.desc(), runs.c.id.desc())
        .limit(last)
    )
    return connection.execute(asked).all()


def _benchmarks(connection: Connection, found: Sequence[PastRun]) -> dict[int, dict[str, None]]:
    asked = (
        select(results.c.run_id, tables.c.benchmark)
        .join(tables, tables.c.id == results.c.table_id)
        .order_by(results.c.run_id, results.c.number)
    )
    rows = rows_in(connection, asked, results.c.run_id, [run.number for run in found])
    return tabled((number, name, None) for number, name in _tuples(tuple[int, str], rows))


def benchmarks_of(store: Store) -> tuple[str, ...]:
    with store.reading() as connection:
        return tuple(connection.execute(select(tables.c.benchmark).distinct()).scalars())


def latest_runs(store: Store, which: Filter, each: int) -> tuple[PastRun, ...]:
    """Returns up to `each` runs for each label on each host, latest first. Raises StoreError."""
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
    """Yields each figure of these runs, with the run's number. Raises StoreError."""
    with store.reading() as connection:
        yield from _figures(connection, numbers)

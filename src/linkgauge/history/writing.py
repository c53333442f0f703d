"""Adds runs to the history, removes runs, and accepts a run as the start of comparisons."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Literal

from sqlalchemy import Connection, Table, case, delete, insert, literal, select, update
from sqlalchemy.dialects import sqlite

from linkgauge.model.cell_id import numbered
from linkgauge.model.documents.history import Figure, PastRun, figure_of
from linkgauge.model.documents.result import Result, Run, RunVerdict

from .records import (
    Row,
    cell_row,
    figure_row,
    machine_row,
    run_row,
    setup_row,
    state_rows,
    table_row,
)
from .store import Store, add_columns, in_parts, rows_in
from .tables import (
    cells,
    facts,
    figures,
    machines,
    results,
    runs,
    setups,
    states,
    tables,
)

Added = Literal["added", "renewed", "known"]
"""The result of adding a run: the run is new, was resumed since it was added, or is unchanged."""


def add(store: Store, run: Run, folder: Path | None, verdict: RunVerdict | None = None) -> Added:
    """Adds a judged run with all its figures. If it raises StoreError, nothing is added."""
    own = run_row(run, None if folder is None else str(folder.absolute()), verdict)
    with store.writing() as connection:
        there = connection.execute(
            select(runs.c.id, runs.c.content).where(runs.c.digest == own["digest"])
        ).first()
        if there is not None and there.content == own["content"]:
            return "known"
        for grown in (figures, runs):
            add_columns(connection, grown)
        numbered = _number(connection, run)
        if there is None:
            number = connection.execute(insert(runs).values(**own, **numbered)).inserted_primary_key
            assert number is not None  # noqa: S101
            run_id = number[0]
        else:
            run_id = there.id
            connection.execute(update(runs).where(runs.c.id == run_id).values(**own, **numbered))
            for table in (figures, results):
                connection.execute(delete(table).where(table.c.run_id == run_id))
        _add_results(connection, run_id, run.results)
    return "added" if there is None else "renewed"


def _number(connection: Connection, run: Run) -> Row:
    machine, setup = machine_row(run.machine), setup_row(run.settings)
    state, named = state_rows(run)
    own = ((machines, machine), (setups, setup), (states, state))
    machine_id, setup_id, state_id = (
        _numbers(connection, table, [row])[row["digest"]] for table, row in own
    )
    _insert_new(connection, facts, [{"state_id": state_id, **fact} for fact in named])
    return {"machine_id": machine_id, "setup_id": setup_id, "state_id": state_id}


def _add_results(connection: Connection, run_id: int, found: Sequence[Result]) -> None:
    if not found:
        return
    table_rows = [table_row(result) for result in found]
    table_ids = _numbers(connection, tables, table_rows)
    rows = [
        {
            "run_id": run_id,
            "number": number,
            "table_id": table_ids[table["digest"]],
            "status": result.status,
            "reason": result.reason,
        }
        for number, (result, table) in enumerate(zip(found, table_rows, strict=True))
    ]
    connection.execute(insert(results), rows)
    # Table by table, as a rack has many cells, and in an order in which two writers never wait for
    # each other.
    each = zip(table_rows, numbered(found), strict=True)
    for table, (result, _, repeat) in sorted(each, key=lambda one: one[0]["digest"]):
        figures_of = (figure_of(result, cell, repeat) for cell in result.cells)
        _add_figures(connection, run_id, {**table, "id": table_ids[table["digest"]]}, figures_of)


def _add_figures(connection: Connection, run_id: int, table: Row, found: Iterable[Figure]) -> None:
    by_cell = {cell["digest"]: (cell, one) for one in found for cell in (cell_row(table, one),)}
    cell_ids = _numbers(connection, cells, [cell for cell, _ in by_cell.values()])
    if by_cell:
        connection.execute(
            insert(figures),
            [
                {"run_id": run_id, "cell_id": cell_ids[key], **figure_row(figure)}
                for key, (_, figure) in by_cell.items()
            ],
        )


def _numbers(connection: Connection, table: Table, rows: Iterable[Row]) -> dict[str, int]:
    """Returns the rows' numbers by digest. Adds missing rows in the order of digests, so that two
    writers never wait for each other."""
    wanted = {row["digest"]: row for row in rows}
    known = _known(connection, table, list(wanted))
    missing = [wanted[key] for key in sorted(wanted.keys() - known.keys())]
    if missing:
        _insert_new(connection, table, missing)
        known |= _known(connection, table, [row["digest"] for row in missing])
    return known


def _known(connection: Connection, table: Table, digests: Sequence[str]) -> dict[str, int]:
    asked = select(table.c.digest, table.c.id)
    return dict(rows_in(connection, asked, table.c.digest, digests))


def _insert_new(connection: Connection, table: Table, rows: list[Row]) -> None:
    if not rows:
        return
    if connection.dialect.name == "postgresql":
        from sqlalchemy.dialects import postgresql  # loads asyncio, too

        connection.execute(postgresql.insert(table).on_conflict_do_nothing(), rows)
    else:
        connection.execute(sqlite.insert(table).on_conflict_do_nothing(), rows)


def accept(store: Store, run: PastRun, moment: int) -> None:
    """Accepts a run's figures as normal: later runs of the same machine and setup are compared only
    with this run and runs after it. `moment` is in microseconds since 1970. Raises StoreError."""
    with store.writing() as connection:
        add_columns(connection, runs)
        setup = select(setups.c.id).where(setups.c.digest == run.setup).scalar_subquery()
        accepted = case((runs.c.id == run.number, literal(moment, runs.c.accepted.type)))
        connection.execute(
            update(runs)
            .where(runs.c.machine_id == run.machine, runs.c.setup_id == setup)
            .values(accepted=accepted)
        )


def remove(store: Store, numbers: Sequence[int]) -> None:
    """Removes runs, and rows that no other run uses. Raises StoreError."""
    with store.writing(alone=True) as connection:
        for some in in_parts(numbers):
            for table, column in (
                (figures, figures.c.run_id), (results, results.c.run_id), (runs, runs.c.id),
            ):  # fmt: skip
                connection.execute(delete(table).where(column.in_(some)))
        for table, users in (
            (cells, figures.c.cell_id),
            (tables, results.c.table_id),
            (states, runs.c.state_id),
            (setups, runs.c.setup_id),
            (machines, runs.c.machine_id),
        ):
            connection.execute(delete(table).where(table.c.id.not_in(select(users))))
    store.compact()

"""A run as Markdown (GitHub's, with tables): for an issue, a merge request or a wiki."""

from __future__ import annotations

from collections.abc import Iterator

from linkgauge.model.units import format_size, unit_of

from .blocks import Block, Column, Entry, Prose, Table, line
from .matrix import ABSENT, shown
from .render.markdown import as_markdown
from .results import SIMULATED
from .rows import CellRow, JudgedRun, cell_rows
from .sections import findings
from .sections.verdict import Closing, verdict

_HEADS = (
    Column("Benchmark"), Column("Backend"), Column("Size", True), Column("Row"), Column("Column"),
    Column("Figure", True), Column("95 % interval", True), Column("Unit"), Column("n", True),
    Column("Of expected", True), Column("Status"), Column("Verdict"), Column("Reason"),
)  # fmt: skip


def summary_markdown(judged: JudgedRun) -> str:
    """A heading, the verdict, a table with a row for each cell, and what the doctor found."""
    run = judged.run
    return as_markdown(f"linkgauge: {f'{run.label} {run.id}'.strip()}", _blocks(judged))


def _blocks(judged: JudgedRun) -> Iterator[Block]:
    run, outcome = judged.run, judged.outcome
    if run.machine.simulated is not None:
        yield Prose([line(SIMULATED, f" {run.machine.simulated}")])
    yield from verdict(run, outcome, Closing())
    yield Table((), _HEADS, [_row(row) for row in cell_rows(run)])
    if outcome.findings:
        yield from findings.blocks(outcome.findings)


def _row(row: CellRow) -> tuple[Entry, ...]:
    interval = f"{_figure(row.low, row)} – {_figure(row.high, row)}"
    fields = (
        row.benchmark,
        row.backend,
        ABSENT if row.size is None else format_size(row.size),
        row.row,
        row.column,
        _figure(row.figure, row),
        ABSENT if row.low is None else interval,
        unit_of(row.unit).shown,
        str(row.n),
        ABSENT if row.share is None else f"{row.share:.0%}",
        row.status,
        row.verdict,
        row.reason or "",
    )
    return tuple(map(Entry, fields))


def _figure(value: float | None, row: CellRow) -> str:
    return ABSENT if value is None else shown(value, row.unit)

"""A run as Markdown (GitHub's, with tables): for an issue, a merge request or a wiki."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from linkgauge.model.units import format_size, unit_of

from .blocks import Block, Column, Entry, Part, Problem, Prose, line
from .matrix import shown
from .render.markdown import as_markdown
from .results import SIMULATED, share, table
from .rows import CellRow, OneRun, cell_rows
from .sections.findings import blocks as findings
from .sections.verdict import Closing, verdict

_HEADS = (
    "Benchmark", "Backend", Column("Size", True), "Row", "Column", Column("Figure", True),
    Column("95 % interval", True), "Unit", Column("n", True), Column("Of expected", True),
    "Status", "Verdict", "Reason",
)  # fmt: skip


def run_markdown(one: OneRun) -> str:
    """A heading, the verdict, a table with a row for each cell, and what the doctor found."""
    return as_markdown(f"linkgauge: {one.run.label} {one.run.id}".strip(), _blocks(one))


def _blocks(one: OneRun) -> Iterator[Block | Part]:
    run, outcome = one.run, one.outcome
    if run.machine.simulated is not None:
        yield Prose([line(SIMULATED, f" {run.machine.simulated}")])
    for block in verdict(run, outcome, Closing()):
        # What to do stands below the findings, with all of its steps.
        yield block._replace(steps=()) if isinstance(block, Problem) else block
    yield table("", _HEADS, map(_entries, cell_rows(run)))
    if outcome.findings:
        yield Part("findings", "Findings", tuple(findings(outcome.findings)))


def _entries(row: CellRow) -> Sequence[str | int | Entry | None]:
    figure, low, high = (
        "" if value is None else shown(value, row.unit) for value in (row.figure, row.low, row.high)
    )
    return (
        row.benchmark, row.backend, row.size and format_size(row.size), row.row, row.column,
        figure, low and f"{low} – {high}", unit_of(row.unit).shown, row.n, share(row.share),
        row.status, row.verdict, row.reason,
    )  # fmt: skip

"""A run as Markdown (GitHub's, with tables): for an issue, a merge request or a wiki."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from linkgauge.judge.findings import Finding
from linkgauge.model.printable import printable
from linkgauge.model.units import format_size, unit_of

from .matrix import ABSENT
from .matrix import shown as digits
from .render.markdown import plain, table_row
from .render.terminal import shown
from .rows import CellRow, JudgedRun, cell_rows
from .sections.verdict import Closing, verdict
from .wrapping import plain_lines

_HEADS = (
    "Benchmark", "Backend", "Size", "Row", "Column", "Figure", "95 % interval", "Unit", "n",
    "Of expected", "Status", "Verdict", "Reason",
)  # fmt: skip
_RIGHT = ("Size", "Figure", "95 % interval", "n", "Of expected")


def summary_markdown(judged: JudgedRun) -> str:
    """A heading, the verdict, a table with a row for each cell, and what the doctor found."""
    return "\n".join(_lines(judged)) + "\n"


def _lines(judged: JudgedRun) -> Iterator[str]:
    run, outcome = judged.run, judged.outcome
    name = f"{run.label} {run.id}".strip()
    yield f"# linkgauge: {plain(name)}"
    yield ""
    if run.machine.simulated is not None:
        yield f"**SIMULATED** {plain(run.machine.simulated)}"
        yield ""
    for line in plain_lines(shown(verdict(run, outcome, Closing()))):
        yield f"{plain(line)}  "
    yield ""
    yield table_row(_HEADS)
    yield table_row(["--:" if head in _RIGHT else "---" for head in _HEADS])
    for row in cell_rows(run):
        yield table_row([plain(field) for field in _fields(row)])
    if outcome.findings:
        yield ""
        yield "## Findings"
        yield ""
        given: dict[tuple[str, ...], str] = {}
        for finding in outcome.findings:
            yield from _finding(finding, given.setdefault(finding.remedy, finding.check))


def _fields(row: CellRow) -> Sequence[str]:
    interval = f"{_figure(row.low, row)} – {_figure(row.high, row)}"
    return (
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


def _figure(value: float | None, row: CellRow) -> str:
    return ABSENT if value is None else digits(value, row.unit)


def _finding(finding: Finding, first: str) -> Iterator[str]:
    """A point of a list; the remedy stands where check `first` gave it, to be copied."""
    head = f"{finding.check} {finding.subject}: {finding.found}"
    yield f"- **{finding.severity}** {plain(head)}"
    if finding.why:
        yield f"  why: {plain(finding.why)}"
    if finding.remedy and first != finding.check:
        yield f"  To fix it: as {plain(first)} above."
    elif finding.remedy:
        lines = [printable(line) for line in finding.remedy]
        fence = "`" * (1 + max(map(len, re.findall(r"`{2,}", "\n".join(lines))), default=2))
        yield from (f"  {line}" for line in ("", fence, *lines, fence))

"""Runs compared, as Markdown."""

from __future__ import annotations

from collections.abc import Iterator

from linkgauge.judge.run_comparison import RunComparison
from linkgauge.model.units import format_size, unit_of

from .fact_lines import said
from .markdown_text import plain, table_row
from .run_comparison_text import changed, figure, lacking, said_of


def run_comparison_markdown(one: RunComparison) -> str:
    """What changed and what differs, and a table with a row for each cell and side."""
    return "\n".join((*_lines(one), ""))


def _lines(one: RunComparison) -> Iterator[str]:
    names = [side.name for side in one.sides]
    yield f"# linkgauge: {plain(', '.join(names[1:]))} against {plain(names[0])}"
    yield ""
    if one.simulated:
        yield "**SIMULATED**"
        yield ""
    for group in one.changed:
        side = f" ({group.side})" if len(names) > 2 else ""
        yield f"- **{group.direction}**: {plain(said_of(group) + side)}"
    for fact in one.differences:
        yield f"- {plain(fact.name)}: {plain(said(fact, names))}"
    yield ""
    heads = ("Benchmark", "Size", "Cell", "Unit", *names, *(f"Change {n}" for n in names[1:]))
    yield table_row([plain(head) for head in heads])
    yield table_row(["---"] * 4 + ["--:"] * (len(heads) - 4))
    for cell in one.cells:
        changes = []
        for change in cell.changes:
            tail = f" ({lacking(change)})" if change.direction == "unknown" else ""
            changes.append(f"{changed(change)} {change.direction}{tail}")
        place = f"{cell.row}, {cell.column}"
        fields = (cell.benchmark, format_size(cell.size), place, unit_of(cell.unit).shown)
        figures = [figure(side, cell.unit) for side in cell.sides]
        yield table_row([plain(field) for field in (*fields, *figures, *changes)])

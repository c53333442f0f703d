"""What was expected of a result, and what is beside it: a few lines after its matrices."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from rich.text import Text

from linkgauge.model.result import CellResult, Result, Verdict
from linkgauge.model.units import unit_of

from .matrix import shown

MOST = 3
"""Expectations that are shown of a result, those of the most cells first."""
NAMED = 6
"""Cells that are named of those whose figures are beside what is expected."""
STYLES: dict[Verdict, str] = {
    "ok": "default",
    "unknown": "default",
    "low": "bold yellow",
    "high": "bold magenta",
}


def expectation_lines(result: Result) -> Iterator[Text]:
    """Cells whose figures are low or high, then what was expected, with the arithmetic."""
    yield from _beside(result, "low")
    yield from _beside(result, "high")
    counts = Counter(line for cell in result.cells if (line := _expected(cell, result.unit)))
    for line, _ in counts.most_common(MOST):
        yield Text(line, "dim")
    if len(counts) > MOST:
        yield Text(f"and {len(counts) - MOST} more expectations", "dim")


def _beside(result: Result, verdict: Verdict) -> Iterator[Text]:
    cells = [cell for cell in result.cells if cell.verdict == verdict and cell.summary]
    if cells:
        named = " ".join(_compared(cell) for cell in cells[:NAMED])
        more = f" and {len(cells) - NAMED} more" if len(cells) > NAMED else ""
        yield Text.assemble((verdict, STYLES[verdict]), f" {named}{more} of what is expected")


def _compared(cell: CellResult) -> str:
    """A cell and its share of what is expected: (0, 1) 43%."""
    expected = cell.expected and (cell.expected.achievable or cell.expected.theoretical)
    share = f" {cell.summary.median / expected:.0%}" if cell.summary and expected else ""
    return f"({cell.row}, {cell.column}){share}"


def _expected(cell: CellResult, unit: str) -> str | None:
    """One line of arithmetic; None where nothing is expected."""
    expected = cell.expected
    if expected is None:
        return None
    if expected.achievable is not None:
        return f"expected {_figure(expected.achievable, unit)}: {expected.because}"
    if expected.theoretical is not None:
        return f"expected at most {_figure(expected.theoretical, unit)}: {expected.because}"
    return None


def _figure(value: float, unit: str) -> str:
    return f"{shown(value, unit)} {unit_of(unit).shown}"

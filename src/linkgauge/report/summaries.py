"""Results of very many cells: the least, the median and the most of each, and what stands out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import median, quantiles

from rich.console import Group, RenderableType
from rich.text import Text

from linkgauge.model.result import CellResult, Result

from .folding import Entry, Folded
from .forms import columns_of, rows_of
from .matrix import brief
from .run_text import hanging
from .sentences import first_of
from .shading import shaded_headline

_COLUMNS = ("cells", "median", "least", "at", "most", "at")
_LEAST = 4
"""Figures of which quartiles mean something."""
_FENCE = 1.5
"""Of Tukey, in distances between the quartiles."""
_CLEARLY = 0.05
"""A figure stands out by at least this share of the median."""
HINT = "whole matrices: --all"


def summary_table(results: Sequence[Result]) -> RenderableType:
    """A line for each result. Of cells that are not judged, those that stand out are named."""
    rows = [_row(result) for result in results]
    return Group(
        Folded([_name(result) for result in results], _COLUMNS, rows, names=True),
        *map(hanging, _outlier_lines(results)),
        hanging(Text(HINT, "dim")),
    )


def _name(result: Result) -> str:
    if (drawn := result.drawn) is None:
        return result.benchmark
    return f"{result.benchmark}, {drawn.pairs} of {drawn.all} pairs (seed {drawn.seed})"


def _known(result: Result) -> list[tuple[float, CellResult]]:
    """Figures with their cells, ascending."""
    found = [(cell.headline, cell) for cell in result.cells if cell.headline is not None]
    return sorted(found, key=lambda each: each[0])


def _row(result: Result) -> list[Entry]:
    known = _known(result)
    middle = median(figure for figure, _ in known) if known else None
    if middle is None:
        return [Entry("0"), *(Entry("·", "dim") for _ in _COLUMNS[1:])]
    (_, least), (_, most) = known[0], known[-1]
    return [
        Entry(str(len(known))),
        Entry(brief(middle, result.unit)),
        shaded_headline(least, result.unit),
        Entry(_place(result, least), "dim"),
        shaded_headline(most, result.unit),
        Entry(_place(result, most), "dim"),
    ]


def _place(result: Result, cell: CellResult) -> str:
    """Of a single column, the row; of a single row, the column."""
    if len(columns_of(result)) == 1:
        return cell.row
    return cell.column if len(rows_of(result)) == 1 else str(cell.place)


def _outlier_lines(results: Sequence[Result]) -> Iterator[Text]:
    for result in results:
        found = outliers(result)
        if found:
            names = [
                f"{_place(result, cell)} {brief(cell.headline or 0.0, result.unit)}"
                for cell in found
            ]
            yield Text.assemble(
                ("stands out", "yellow"), f" {result.benchmark} {first_of(names, ', ')}"
            )


def outliers(result: Result) -> list[CellResult]:
    """Cells that are not judged and lie beyond Tukey's fences of all, the farthest first."""
    known = _known(result)
    if len(known) < _LEAST:
        return []
    low, middle, high = quantiles((figure for figure, _ in known), n=4)
    room = max(_FENCE * (high - low), _CLEARLY * middle)
    far = [(max(low - figure, figure - high), cell) for figure, cell in known]
    far.sort(key=lambda each: -each[0])
    return [cell for off, cell in far if off > room and cell.verdict == "unknown"]

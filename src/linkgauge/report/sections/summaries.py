"""Summarises results with very many cells: the lowest, the median and the highest figure, and what
stands out."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from operator import attrgetter
from statistics import median, quantiles

from linkgauge.model.cell_id import place_of
from linkgauge.model.documents.result import CellResult, Result
from linkgauge.model.units import unit_of
from linkgauge.report.blocks import Block, Column, Entry, Line, Shade, Span, Table, line, plain
from linkgauge.report.forms import columns_of, rows_of
from linkgauge.report.matrix import brief
from linkgauge.report.results import common, figure, label, verdict, without_empty
from linkgauge.report.shading import legend, shade
from linkgauge.report.words.sentences import first_of

from .figures import ALIKE, WHOLE, ResultView

_HEADS = (
    Column("benchmark"), Column("cells", True, 1), Column("median", True), Column("least", True),
    Column("at", rank=2), Column("most", True), Column("at", rank=3), Column("verdict", rank=1),
)  # fmt: skip
_LEAST = 4
"""The fewest figures with meaningful quartiles."""
_FENCE = 1.5
"""Tukey's fence, in distances between the quartiles."""
_CLEARLY = 0.05
"""The least share of the median by which a figure stands out."""

Known = Sequence[tuple[float, CellResult]]
"""Figures with their cells, ascending."""


def summary(view: ResultView) -> Iterator[Block]:
    hint = {"summary": WHOLE, "uniform": ALIKE}.get(view.large, "")
    caption = common(view.results, unit_of(view.first.unit).shown)
    yield _table_of(view.results, caption, view.below(), view.anchor, hint)


def _table_of(
    results: Sequence[Result], caption: Line, below: Sequence[Line], anchor: str, hint: str
) -> Table:
    """Makes a table with a line for each result. If the result is not judged, cells that stand out
    are named."""
    known = [_known(result) for result in results]
    rows = [_row(*each) for each in zip(results, known, strict=True)]
    ends = [shade(own[at][1], "") for own in known if own for at in (0, -1)]
    more = (legend(ends), *_outlier_lines(results, known), plain(hint, "dim"))
    lines = (*(each for each in more if each), *below)
    return without_empty(Table(caption, _HEADS, rows, True, anchor, lines))


def _known(result: Result) -> Known:
    found = [(cell.headline, cell) for cell in result.cells if cell.headline is not None]
    return sorted(found, key=lambda each: each[0])


def _row(result: Result, known: Known) -> tuple[Entry, ...]:
    (_, least), (_, most) = known[0], known[-1]
    place, drawn = _namer(result), result.drawn
    sample = f", {drawn.pairs} of {drawn.all} pairs (seed {drawn.seed})" if drawn else ""
    return (
        Entry(label(f"{result.benchmark}{sample}")),
        Entry(f"{len(known):,}", len(known)),
        figure(median(value for value, _ in known), result.unit),
        *_end(result, least, place),
        *_end(result, most, place),
        verdict([result], result.cells),
    )


def _end(
    result: Result, cell: CellResult, place: Callable[[CellResult], str]
) -> tuple[Entry, Entry]:
    shown = shade(cell, result.unit) or Shade("")
    text = f"{shown.text}{shown.sign}"
    return Entry(text, cell.headline, shown.tone), Entry(place(cell), tone="dim")


def _namer(result: Result) -> Callable[[CellResult], str]:
    """Returns what gives the name of a cell: its row if there is a single column, its column if
    there is a single row, else both."""
    if len(columns_of(result)) == 1:
        return attrgetter("row")
    return attrgetter("column") if len(rows_of(result)) == 1 else partial(place_of, result)


def _outlier_lines(results: Sequence[Result], known: Sequence[Known]) -> Iterator[Line]:
    for result, own in zip(results, known, strict=True):
        if found := _outliers(own):
            place = _namer(result)
            names = [f"{place(cell)} {brief(cell.headline or 0.0, result.unit)}" for cell in found]
            named = f" {result.benchmark} {first_of(names, ', ')}"
            yield line(Span("stands out", "warn"), named)


def _outliers(known: Known) -> list[CellResult]:
    """Returns cells that are not judged and whose figure is far from all others (beyond Tukey's
    fences). The farthest come first."""
    if len(known) < _LEAST:
        return []
    low, middle, high = quantiles((value for value, _ in known), n=4)
    room = max(_FENCE * (high - low), _CLEARLY * middle)
    far = [
        (off, cell)
        for value, cell in known
        if (off := max(low - value, value - high)) > room and cell.verdict == "not judged"
    ]
    return [cell for _, cell in sorted(far, key=lambda each: -each[0])]

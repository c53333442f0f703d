"""Shows all figures with remarks: results with at most one row as tables, the others as
matrices."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from linkgauge.model.cell_id import place_of
from linkgauge.model.documents.result import CellResult, Result, Run
from linkgauge.model.transfer import Place
from linkgauge.model.units import format_size, unit_of
from linkgauge.report.blocks import Block, Heat, Line, Prose, Shade, Span, line, plain
from linkgauge.report.curves import EXTREMES, At, curves_of, extremes
from linkgauge.report.forms import (
    MOST_COLUMNS,
    Large,
    SharedTable,
    cells_of,
    columns_of,
    form_of,
    has_figures,
    is_large,
    meaning_of,
    rows_of,
    together,
)
from linkgauge.report.matrix import brief, in_order
from linkgauge.report.results import common, heading, label, marks, title_line
from linkgauge.report.shading import Ends, legend, shade
from linkgauge.report.words.remarks import below_lines

from . import OneRun, Section, cells, collectives, many, summaries
from .sizes import MOST_PATHS, chart_of_levels, line_lines

MOST_LINES = 8
"""The most lines below a matrix of a page."""
MOST_PLACES, FEW_PLACES = 50_000, 8_000
"""The most cells of all large matrices of a page together, and of a small page."""
FEW_LINES = 4
"""The most paths whose lines over sizes are shown; more are summed up."""
SOME = 8
"""The number of columns that are shown of a sweep with too many."""
WHOLE = "--all shows the whole"
SHADES = (
    "Green is as expected, amber below (▼), what slow links allow (↓) or far from its peers (▽ △),"
    " red below half (▼▼); blue is not judged, and darker for more."
)
LESS = (
    f"Matrices of more than {MOST_COLUMNS} rows are reduced to their ends and what stands out, "
    "since this page has no room for more: linkgauge show --all shows them whole."
)
ALIKE = "Large matrices whose figures are much the same: linkgauge show --all shows them whole."
_OF_PAGE: tuple[Large, ...] = ("uniform", "reduced")


def blocks(run: Run, large: Large = "summary") -> Iterator[Block]:
    """Yields the blocks of all results that have any figure."""
    for number, shown in enumerate(together(run.results, large)):
        yield from blocks_of(shown, run, large, f"b{number}")


def blocks_of(
    shown: SharedTable, run: Run, large: Large = "whole", anchor: str = ""
) -> Iterator[Block]:
    """Yields the blocks of results that are shown together."""
    yield from _FORMS[shown.form](_ResultView(anchor, shown, run, large))


def anchors(judged: OneRun) -> Iterator[tuple[str, Result]]:
    """Yields each result with the anchor (link target) of its figures on a page."""
    for number, shown in enumerate(together(judged.run.results, large_of(judged))):
        yield from ((f"b{number}", result) for result in shown.results)


def large_of(judged: OneRun) -> Large:
    """Returns how the large matrices of a run are shown on a page. With `uniform`, only matrices
    with nearly equal figures become one line. With `reduced`, all become one line, because there
    are too many cells."""
    most = FEW_PLACES if judged.is_small else MOST_PLACES
    large = [one for one in judged.run.results if has_figures(one) and is_large(one)]
    if sum(len(one.cells) for one in large) <= most:
        return "uniform"
    matrices = (one for one in large if form_of(one, "uniform") == "matrix")
    places = sum(len(one.cells) for one in matrices if not many.is_many(one))
    return "uniform" if places <= most else "reduced"


Shaded = tuple[str, list[Shade | None]]
"""A row with its name."""


class _ResultView(NamedTuple):
    """Results that are shown together, with the anchor on the page and the form of large
    matrices."""

    anchor: str
    shown: SharedTable
    run: Run
    large: Large

    @property
    def results(self) -> Sequence[Result]:
        return self.shown.results

    @property
    def first(self) -> Result:
        return self.shown.results[0]

    def below(self, *more: Line | None) -> tuple[Line, ...]:
        """Returns the lines below the figures: the remarks, and the fitted lines of time against
        size."""
        is_named = self.shown.form in ("rows", "transfers")
        lines = [*below_lines(self.results, named=is_named), *self._fits()]
        if self.large in _OF_PAGE and len(lines) > MOST_LINES:
            rest = f"and {len(lines) - MOST_LINES} more remarks"
            lines = [*lines[:MOST_LINES], plain(rest, "dim")]
        return (*(one for one in more if one), *lines)

    def _fits(self) -> Iterator[Line]:
        names = dict.fromkeys((one.benchmark, one.backend) for one in self.results)
        for own in names:
            lines = [one for one in self.run.lines if (one.benchmark, one.backend) == own]
            several, most = (f"{own[0]}: ", 1) if len(names) > 1 else ("", FEW_LINES)
            yield from (line(Span(several, "dim"), *fit) for fit in line_lines(lines, most))


def _rows(view: _ResultView) -> Iterator[Block]:
    yield cells.table_of(view.results, view.below(), view.anchor)


def _transfers(view: _ResultView) -> Iterator[Block]:
    yield cells.transfers_of(view.first, view.below(), view.anchor)


def _columns(view: _ResultView) -> Iterator[Block]:
    """Yields a table with a row for each benchmark, or for each row of its matrix."""
    columns = _some(columns_of(view.first), view.large)
    found = [
        (f"{result.benchmark} {row}" if len(rows_of(result)) > 1 else result.benchmark, own)
        for result in view.results
        for row, own in _lines(result, columns)
    ]
    meaning = meaning_of(view.first.title)
    title = common(view.results, unit_of(view.first.unit).shown)
    left = _left_out(columns, columns_of(view.first))
    yield _heat(view, title, f"columns: {meaning or 'column'}", columns, found, left)


def _matrix(view: _ResultView) -> Iterator[Block]:
    """Yields the matrix of headline figures. A single column is shown as a row. A sweep with very
    many rows shows only the lowest, the median and the highest figure."""
    result = view.first
    if view.large == "uniform" and many.is_many(result):
        yield from many.blocks_of_many(result, heading(result), view.below(), view.anchor)
        return
    columns = columns_of(result)
    columns = _some(columns, view.large) if result.sweep else columns
    if set(columns) == set(rows_of(result)):
        columns = in_order(columns)
    found, left = list(_lines(result, columns)), _left_out(columns, columns_of(result))
    if result.sweep and len(found) > MOST_COLUMNS and view.large == "summary":
        left = plain(f"{len(EXTREMES)} lines for {len(found)} rows: {WHOLE}", "dim")
        rows: dict[str, dict[str, float]] = {}
        for cell in result.cells:
            if cell.headline is not None:
                rows.setdefault(cell.row, {})[cell.column] = cell.headline
        found = list(_extremes(rows, columns, result.unit))
    heat = _heat(view, heading(result), title_line(result), columns, found, left)
    yield heat.turned if len(columns) == 1 and len(found) <= MOST_COLUMNS else heat


def _heat(
    view: _ResultView, title: Line, caption: str, columns: Sequence[str], found: Sequence[Shaded],
    left: Line | None = None,
) -> Heat:  # fmt: skip
    signs = legend(one for _, row in found for one in row)
    return Heat(
        view.anchor, title, caption, "", [label(name) for name, _ in found],
        [label(name) for name in columns], [own for _, own in found], view.below(signs, left),
    )  # fmt: skip


def _extremes(
    curves: Mapping[str, Mapping[At, float]], places: Sequence[At], unit: str
) -> Iterator[Shaded]:
    """Yields a matrix of the lowest, the median and the highest figure of all curves, by position
    on the x axis."""
    for word, curve in extremes(curves).items():
        yield word, [Shade(brief(curve[at], unit)) if at in curve else None for at in places]


def _lines(result: Result, columns: Sequence[str]) -> Iterator[Shaded]:
    """Yields each row: its name and its figures."""
    found = {cell.place: cell for cell in result.cells}
    rows, ends = rows_of(result), _ends(result)
    for row in in_order(rows) if set(columns) == set(rows) else rows:
        own = [found.get(Place(row, at)) for at in columns]
        yield row, [shade(cell, result.unit, ends) for cell in own]


def _ends(result: Result) -> Ends | None:
    figures = [cell.headline for cell in result.cells if cell.headline is not None]
    return (min(figures), max(figures)) if figures else None


def _some(columns: tuple[str, ...], large: Large) -> tuple[str, ...]:
    """Returns the columns. If there are too many, returns an even selection that includes the last
    column."""
    if len(columns) <= MOST_COLUMNS or large != "summary":
        return columns
    return tuple(columns[(n + 1) * len(columns) // SOME - 1] for n in range(SOME))


def _left_out(columns: Sequence[str], whole: Sequence[str]) -> Line | None:
    if len(columns) == len(whole):
        return None
    return plain(f"{len(columns)} of {len(whole)} columns: {WHOLE}", "dim")


def _sizes(view: _ResultView) -> Iterator[Block]:
    """Yields a table with a row for each path and a column for each size. If there are very many
    sizes, they become the rows. If a size was measured several times, the last figure counts."""
    sizes = sorted({one.size for one in view.results})
    names = dict.fromkeys(one.benchmark for one in view.results)
    found = [row for name in names for row in _by_size(name, view.results, sizes)]
    title = line(
        Span(f"{view.first.backend}  {unit_of(view.first.unit).shown} by size", "strong"),
        *marks(view.results),
    )
    caption = view.first.title if len(names) == 1 else ""
    heat = _heat(view, title, caption, [format_size(size) for size in sizes], found)
    yield heat.turned if len(sizes) > MOST_COLUMNS else heat


def _by_size(name: str, every: Sequence[Result], sizes: Sequence[int]) -> Iterator[Shaded]:
    """Yields the paths of one benchmark with their figures by size."""
    results = [one for one in every if one.benchmark == name]
    paths: dict[str, dict[int, CellResult]] = {}
    for result, cell in cells_of(results):
        paths.setdefault(place_of(result, cell), {})[result.size] = cell
    unit = results[0].unit
    if len(paths) > MOST_PATHS:
        for word, own in _extremes(curves_of(results), sizes, unit):
            yield f"{name}, {word} of {len(paths)} paths", own
        return
    for path, curve in paths.items():
        shades = [shade(curve.get(size), unit) for size in sizes]
        yield f"{name} {path}" if len(paths) > 1 else name, shades


def _summary(view: _ResultView) -> Iterator[Block]:
    hint = {"summary": WHOLE, "uniform": ALIKE}.get(view.large, "")
    caption = common(view.results, unit_of(view.first.unit).shown)
    yield summaries.table_of(view.results, caption, view.below(), view.anchor, hint)


def _levels(view: _ResultView) -> Iterator[Block]:
    """Yields a table of a curve's levels, and the chart of the levels."""
    result = view.first
    yield Prose((heading(result), plain(title_line(result))))
    chart = chart_of_levels(result)
    yield chart._replace(lines=(*chart.lines, *view.below()), anchor=view.anchor)


def _collectives(view: _ResultView) -> Iterator[Block]:
    result = view.first
    yield from collectives.blocks_of(result, heading(result), view.below(), view.anchor)


_FORMS = {
    "rows": _rows,
    "transfers": _transfers,
    "columns": _columns,
    "matrix": _matrix,
    "summary": _summary,
    "sizes": _sizes,
    "levels": _levels,
    "collectives": _collectives,
}


def _of_page(one: OneRun) -> Iterator[Block]:
    large = large_of(one)
    found = list(blocks(one.run, large))
    if large == "reduced":
        yield Prose((plain(LESS),))
    if any(isinstance(block, Heat) for block in found):
        yield Prose((plain(SHADES, "dim"),))
    yield from found


SECTION = Section("figures", "All figures", 30, of_run=_of_page)

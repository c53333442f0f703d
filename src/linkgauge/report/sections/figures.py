"""Shows all figures with remarks, as tables and matrices, and on demand every detail of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from linkgauge.model.cell_id import place_of
from linkgauge.model.documents.result import CellResult, Result, Run
from linkgauge.model.grouped import tabled
from linkgauge.model.transfer import Place
from linkgauge.model.units import format_size, unit_of
from linkgauge.report.blocks import Block, Heat, Line, Prose, Shade, Span, line, plain
from linkgauge.report.curves import EXTREMES, At, curves_of, extremes
from linkgauge.report.forms import (
    MOST_COLUMNS,
    Ends,
    Large,
    SharedTable,
    cells_of,
    columns_of,
    form_of,
    has_figures,
    is_large,
    legend,
    meaning_of,
    rows_of,
    shade,
    together,
    utilised,
)
from linkgauge.report.matrix import (
    Matrix,
    brief,
    in_order,
    matrices,
    matrices_beside,
    of_cells,
    shown,
)
from linkgauge.report.results import common, heading, label, marks, title_line, turned
from linkgauge.report.words.remarks import below_lines

from . import OneRun, Section, cells, many
from .latency import percentiles
from .sizes import MOST_PATHS, chart_of_levels, level_lines, line_lines

MOST_LINES = 8
MOST_PLACES, FEW_PLACES = 50_000, 8_000
"""The most cells of all large matrices of a page, and of a small page."""
FEW_LINES = 4
SOME = 8
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
    for number, each in enumerate(together(run.results, large)):
        yield from blocks_of(each, run, large, f"b{number}")


def blocks_of(
    shown: SharedTable, run: Run, large: Large = "whole", anchor: str = ""
) -> Iterator[Block]:
    view = _ResultView(anchor, shown, run, large)
    first, below = view.first, view.below()
    match shown.form:
        case "rows":
            yield cells.table_of(view.results, below, anchor)
        case "transfers":
            yield cells.transfers_of(first, below, anchor)
        case "collectives":
            yield from cells.blocks_of(first, heading(first), below, anchor)
        case "summary":
            hint = {"summary": WHOLE, "uniform": ALIKE}.get(large, "")
            caption = common(view.results, unit_of(first.unit).shown)
            yield many.table_of(view.results, caption, below, anchor, hint)
        case "matrix" if large == "uniform" and many.is_many(first):
            yield from many.blocks_of_many(first, heading(first), below, anchor)
        case "matrix":
            yield _matrix(view)
        case "columns":
            yield _columns(view)
        case "sizes":
            yield _sizes(view)
        case "levels":
            yield Prose((heading(first), plain(title_line(first))))
            chart = chart_of_levels(first)
            yield chart._replace(lines=(*chart.lines, *below), anchor=anchor)


def anchors(judged: OneRun) -> Iterator[tuple[str, Result]]:
    """Yields each result with the anchor (link target) of its figures on a page."""
    for number, each in enumerate(together(judged.run.results, large_of(judged))):
        yield from ((f"b{number}", result) for result in each.results)


def large_of(judged: OneRun) -> Large:
    """`uniform`: matrices with nearly equal figures become one line. `reduced`: all do, because
    there are too many cells."""
    most = FEW_PLACES if judged.is_small else MOST_PLACES
    large = [one for one in judged.run.results if has_figures(one) and is_large(one)]
    if sum(len(one.cells) for one in large) <= most:
        return "uniform"
    matrices = (one for one in large if form_of(one, "uniform") == "matrix")
    places = sum(len(one.cells) for one in matrices if not many.is_many(one))
    return "uniform" if places <= most else "reduced"


Shaded = tuple[str, list[Shade | None]]


class _ResultView(NamedTuple):
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


def _columns(view: _ResultView) -> Heat:
    columns = _some(columns_of(view.first), view.large)
    found = [
        (f"{result.benchmark} {row}" if len(rows_of(result)) > 1 else result.benchmark, own)
        for result in view.results
        for row, own in _lines(result, columns)
    ]
    meaning = meaning_of(view.first.title)
    title = common(view.results, unit_of(view.first.unit).shown)
    left = _left_out(columns, columns_of(view.first))
    return _heat(view, title, f"columns: {meaning or 'column'}", columns, found, left)


def _matrix(view: _ResultView) -> Heat:
    """A single column is shown as a row. A sweep with very many rows shows its extremes alone."""
    result = view.first
    columns = columns_of(result)
    columns = _some(columns, view.large) if result.sweep else columns
    if set(columns) == set(rows_of(result)):
        columns = in_order(columns)
    found, left = list(_lines(result, columns)), _left_out(columns, columns_of(result))
    if result.sweep and len(found) > MOST_COLUMNS and view.large == "summary":
        left = plain(f"{len(EXTREMES)} lines for {len(found)} rows: {WHOLE}", "dim")
        known = (one for one in result.cells if one.headline is not None)
        rows = tabled((one.row, one.column, one.headline or 0.0) for one in known)
        found = list(_extremes(rows, columns, result.unit))
    heat = _heat(view, heading(result), title_line(result), columns, found, left)
    return heat.turned if len(columns) == 1 and len(found) <= MOST_COLUMNS else heat


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
    for word, curve in extremes(curves).items():
        yield word, [Shade(brief(curve[at], unit)) if at in curve else None for at in places]


def _lines(result: Result, columns: Sequence[str]) -> Iterator[Shaded]:
    found = {cell.place: cell for cell in result.cells}
    rows, ends = rows_of(result), _ends(result)
    for row in in_order(rows) if set(columns) == set(rows) else rows:
        own = [found.get(Place(row, at)) for at in columns]
        yield row, [shade(cell, result.unit, ends) for cell in own]


def _ends(result: Result) -> Ends | None:
    figures = [cell.headline for cell in result.cells if cell.headline is not None]
    return (min(figures), max(figures)) if figures else None


def _some(columns: tuple[str, ...], large: Large) -> tuple[str, ...]:
    if len(columns) <= MOST_COLUMNS or large != "summary":
        return columns
    return tuple(columns[(n + 1) * len(columns) // SOME - 1] for n in range(SOME))


def _left_out(columns: Sequence[str], whole: Sequence[str]) -> Line | None:
    if len(columns) == len(whole):
        return None
    return plain(f"{len(columns)} of {len(whole)} columns: {WHOLE}", "dim")


def _sizes(view: _ResultView) -> Heat:
    """If there are very many sizes, they become the rows. The last figure of a size counts."""
    sizes = sorted({one.size for one in view.results})
    names = dict.fromkeys(one.benchmark for one in view.results)
    found = [row for name in names for row in _by_size(name, view.results, sizes)]
    title = line(
        Span(f"{view.first.backend}  {unit_of(view.first.unit).shown} by size", "strong"),
        *marks(view.results),
    )
    caption = view.first.title if len(names) == 1 else ""
    heat = _heat(view, title, caption, [format_size(size) for size in sizes], found)
    return heat.turned if len(sizes) > MOST_COLUMNS else heat


def _by_size(name: str, every: Sequence[Result], sizes: Sequence[int]) -> Iterator[Shaded]:
    results = [one for one in every if one.benchmark == name]
    paths = tabled((place_of(one, cell), one.size, cell) for one, cell in cells_of(results))
    unit = results[0].unit
    if len(paths) > MOST_PATHS:
        for word, own in _extremes(curves_of(results), sizes, unit):
            yield f"{name}, {word} of {len(paths)} paths", own
        return
    for path, curve in paths.items():
        shades = [shade(curve.get(size), unit) for size in sizes]
        yield f"{name} {path}" if len(paths) > 1 else name, shades


def _of_page(one: OneRun) -> Iterator[Block]:
    large = large_of(one)
    found = list(blocks(one.run, large))
    if large == "reduced":
        yield Prose((plain(LESS),))
    if any(isinstance(block, Heat) for block in found):
        yield Prose((plain(SHADES, "dim"),))
    yield from found


SECTION = Section("figures", "All figures", 30, of_run=_of_page)


Shades = Mapping[Place, Shade | None]


def detailed_blocks(run: Run, *, utilization: bool = False) -> Iterator[Block]:
    for result in run.results:
        if has_figures(result):
            yield from _of_result(result, run)
        if utilization:
            yield from _used(result)
    for each in together(run.results, "whole"):
        if each.form == "sizes":
            yield from blocks_of(each, run)


def _of_result(result: Result, run: Run) -> Iterator[Block]:
    (alone,) = together([result], "whole")
    if alone.form in ("transfers", "collectives"):
        yield from blocks_of(alone, run)
        return
    caption = title_line(result)
    cells = {cell.place: cell for cell in result.cells}
    for number, matrix in enumerate(matrices(result)):
        texts = {at: shown(value, result.unit) for at, value in matrix.figures.items()}
        shades = {
            at: shade(cell, result.unit, text=texts.get(at))
            for at, cell in cells.items()
            if at in texts or cell.headline is None
        }
        below = [signs] if (signs := legend(shades.values())) else []
        if matrix.total is not None:
            below.append(_sum(matrix, result.unit))
        heat = _heat_of(matrix.part, matrix, shades, result, below)
        more = f", {matrix.part}" if matrix.part else ""
        if not number:
            is_turned = tuple(heat.rows) == matrix.columns != matrix.rows
            caption = turned(caption) if is_turned else caption
            heat = heat._replace(title=heading(result), caption=f"{caption}{more}")
        yield heat
    for matrix in matrices_beside(result):
        yield _heat_of(matrix.name, matrix, _dim(matrix.figures), result)
    yield from percentiles(result)
    lines = (*level_lines(result), *below_lines([result], detailed=True))
    if lines:
        yield Prose(lines)


def _dim(figures: Mapping[Place, float], digits: int = 2) -> Shades:
    return {at: Shade(f"{value:.{digits}f}", "dim") for at, value in figures.items()}


def _heat_of(
    title: str, matrix: Matrix, shades: Shades, result: Result, lines: list[Line] | None = None
) -> Heat:
    rows, columns = matrix.rows, matrix.columns
    found = [[shades.get(Place(row, column)) for column in columns] for row in rows]
    heat = Heat("", plain(title), "", "", rows, columns, found, lines or ())
    return heat.turned if result.sweep and len(columns) > MOST_COLUMNS else heat


def _sum(matrix: Matrix, unit: str) -> Line:
    there = len(matrix.figures)
    of = f" of {there} of {matrix.cells} cells" if there < matrix.cells else ""
    return plain(f"SUM {matrix.name} {shown(matrix.total or 0.0, unit)}{of}", "dim")


def _used(result: Result) -> Iterator[Block]:
    *_, whole = matrices(result)
    for matrix in of_cells(result, f"{whole.name} of theoretical (%)", _percent):
        yield _heat_of(matrix.name, matrix, _dim(matrix.figures, 1), result)
    title = "CPU time of the measuring process"
    for matrix in of_cells(result, f"{whole.name} {title} (CPUs)", lambda cell: cell.cpus):
        if result.benchmark == "copy":
            yield Prose([plain(f"{title}: {next(iter(matrix.figures.values())):.2f} CPUs")])
        else:
            yield _heat_of(matrix.name, matrix, _dim(matrix.figures), result)


def _percent(cell: CellResult) -> float | None:
    return None if (used := utilised(cell)) is None else 100 * used

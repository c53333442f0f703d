"""Shows figures as heat maps: of one result, of results with the same columns, or by size."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import TYPE_CHECKING

from linkgauge.model.cell_id import place_of
from linkgauge.model.documents.result import CellResult, Result, Run
from linkgauge.model.grouped import tabled
from linkgauge.model.transfer import Place
from linkgauge.model.units import format_decimals, format_figure, format_size, unit_of
from linkgauge.report.blocks import Block, Heat, Line, Prose, Shade, Span, line, plain
from linkgauge.report.forms import (
    MOST_COLUMNS,
    Large,
    cells_of,
    columns_of,
    form_of,
    has_figures,
    legend,
    meaning_of,
    rows_of,
    shade,
    together,
    utilised,
)
from linkgauge.report.matrix import Matrix, concurrent_matrices, in_order, matrices, of_cells
from linkgauge.report.results import common, heading, label, marks, title_line, turned
from linkgauge.report.words.remarks import below_lines

from .figures import WHOLE, ResultView, blocks_of

if TYPE_CHECKING:
    from linkgauge.report.curves import At

SOME = 8
Shaded = tuple[str, list[Shade | None]]


def columns(view: ResultView) -> Iterator[Block]:
    columns, left = _some(view.first, view.large)
    found = [
        (f"{result.benchmark} {row}" if len(rows_of(result)) > 1 else result.benchmark, own)
        for result in view.results
        for row, own in _lines(result, columns)
    ]
    meaning = meaning_of(view.first.title)
    title = common(view.results, unit_of(view.first.unit).shown)
    yield _heat(view, title, f"columns: {meaning or 'column'}", columns, found, left)


def matrix(view: ResultView) -> Iterator[Block]:
    """Shows a result as a matrix. Turns a single column into a row. Summarizes a long sweep."""
    result = view.first
    columns, left = _some(result, view.large if result.sweep else "whole")
    if set(columns) == set(rows_of(result)):
        columns = in_order(columns)
    found = list(_lines(result, columns))
    if result.sweep and len(found) > MOST_COLUMNS and view.large == "summary":
        from linkgauge.report.curves import EXTREMES

        left = plain(f"{len(EXTREMES)} lines for {len(found)} rows: {WHOLE}", "dim")
        known = (one for one in result.cells if one.headline is not None)
        rows = tabled((one.row, one.column, one.headline or 0.0) for one in known)
        found = list(_extremes(rows, columns, result.unit))
    heat = _heat(view, heading(result), title_line(result), columns, found, left)
    yield heat.turned if len(columns) == 1 and len(found) <= MOST_COLUMNS else heat


def _heat(
    view: ResultView, title: Line, caption: str, columns: Sequence[str], found: Sequence[Shaded],
    left: Line | None = None,
) -> Heat:  # fmt: skip
    names, shades = zip(*found, strict=True)
    signs = legend(chain.from_iterable(shades))
    return Heat(
        view.anchor, title, caption, "", [*map(label, names)], [*map(label, columns)], shades,
        view.below(signs, left),
    )  # fmt: skip


def _extremes(
    curves: Mapping[str, Mapping[At, float]], places: Sequence[At], unit: str
) -> Iterator[Shaded]:
    from linkgauge.report.curves import extremes

    for word, curve in extremes(curves).items():
        shades = {at: Shade(format_figure(value, unit)) for at, value in curve.items()}
        yield word, [*map(shades.get, places)]


def _lines(result: Result, columns: Sequence[str]) -> Iterator[Shaded]:
    found = {cell.place: cell for cell in result.cells}
    figures = [cell.headline for cell in result.cells if cell.headline is not None]
    rows, ends = rows_of(result), (min(figures), max(figures)) if figures else None
    for row in in_order(rows) if set(columns) == set(rows) else rows:
        own = [found.get(Place(row, at)) for at in columns]
        yield row, [shade(cell, result.unit, ends) for cell in own]


def _some(result: Result, large: Large) -> tuple[tuple[str, ...], Line | None]:
    whole = columns_of(result)
    if len(whole) <= MOST_COLUMNS or large != "summary":
        return whole, None
    some = tuple(whole[(n + 1) * len(whole) // SOME - 1] for n in range(SOME))
    return some, plain(f"{SOME} of {len(whole)} columns: {WHOLE}", "dim")


def sizes(view: ResultView) -> Iterator[Block]:
    """Shows figures by size, or turned for many sizes. A repeated size shows its last figure."""
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
    from linkgauge.report.curves import curves_of
    from linkgauge.report.words.size_lines import MOST_PATHS

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


Shades = Mapping[Place, Shade | None]


def detailed_blocks(run: Run, *, utilization: bool = False) -> Iterator[Block]:
    for result in run.results:
        if has_figures(result):
            yield from _of_result(result, run)
        if utilization:
            yield from _used(result)
    for form, results in together(run.results, "whole"):
        if form == "sizes":
            yield from blocks_of(ResultView(form, results, run))


def _of_result(result: Result, run: Run) -> Iterator[Block]:
    form = form_of(result, "whole")
    if form in ("transfers", "collectives"):
        yield from blocks_of(ResultView(form, [result], run))
        return
    caption = title_line(result)
    cells = {cell.place: cell for cell in result.cells}
    for number, matrix in enumerate(matrices(result)):
        texts = {at: format_decimals(value, result.unit) for at, value in matrix.figures.items()}
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
    for matrix in concurrent_matrices(result):
        yield _heat_of(matrix.name, matrix, _dim(matrix.figures), result)
    from .latency import percentiles
    from .sizes import level_lines

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
    of = f" ({there} of {matrix.cells} cells)" if there < matrix.cells else ""
    return plain(f"SUM {matrix.name} {format_decimals(matrix.total or 0.0, unit)}{of}", "dim")


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

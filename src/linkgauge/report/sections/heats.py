"""Shows figures as matrices: of places, of columns that several benchmarks share, and of sizes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from linkgauge.model.cell_id import place_of
from linkgauge.model.documents.result import CellResult, Result
from linkgauge.model.transfer import Place
from linkgauge.model.units import format_size, unit_of
from linkgauge.report.blocks import Block, Heat, Line, Shade, Span, line, plain
from linkgauge.report.curves import EXTREMES, At, curves_of, extremes
from linkgauge.report.forms import (
    MOST_COLUMNS,
    Large,
    cells_of,
    columns_of,
    meaning_of,
    rows_of,
)
from linkgauge.report.matrix import brief, in_order
from linkgauge.report.results import common, heading, label, marks, title_line
from linkgauge.report.shading import Ends, legend, shade

from .figures import WHOLE, ResultView
from .many import blocks_of_many, is_many
from .sizes import MOST_PATHS

SOME = 8
"""The number of columns that are shown of a sweep with too many."""
Shaded = tuple[str, list[Shade | None]]
"""A row with its name."""


def columns(view: ResultView) -> Iterator[Block]:
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


def matrix(view: ResultView) -> Iterator[Block]:
    """Yields the matrix of headline figures. A single column is shown as a row. A sweep with very
    many rows shows only the lowest, the median and the highest figure."""
    result = view.first
    if view.large == "uniform" and is_many(result):
        yield from blocks_of_many(result, heading(result), view.below(), view.anchor)
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
    view: ResultView, title: Line, caption: str, columns: Sequence[str], found: Sequence[Shaded],
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


def sizes(view: ResultView) -> Iterator[Block]:
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

"""Shows each result in full: matrices of every figure, percentiles of single iterations, and the
load on hardware and CPUs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from linkgauge.model.documents.result import CellResult, Result, Run
from linkgauge.model.transfer import Place
from linkgauge.report.beside import matrices_beside
from linkgauge.report.blocks import Block, Heat, Line, Prose, Shade, plain
from linkgauge.report.forms import MOST_COLUMNS, has_figures, together
from linkgauge.report.matrix import Matrix, matrices, of_cells, shown
from linkgauge.report.results import heading as heading_of
from linkgauge.report.results import title_line, turned
from linkgauge.report.shading import legend, shade, utilised
from linkgauge.report.words.remarks import below_lines

from . import figures
from .latency import percentiles
from .levels import level_lines

Shades = Mapping[Place, Shade | None]


def blocks(run: Run, *, utilization: bool = False) -> Iterator[Block]:
    """Yields the details of each result, and then the tables over several sizes."""
    for result in run.results:
        if has_figures(result):
            yield from _of_result(result, run)
        if utilization:
            yield from _used(result)
    for each in together(run.results, "whole"):
        if each.form == "sizes":
            yield from figures.blocks_of(each, run)


def _of_result(result: Result, run: Run) -> Iterator[Block]:
    (alone,) = together([result], "whole")
    if alone.form in ("transfers", "collectives"):
        yield from figures.blocks_of(alone, run)
        return
    heading, caption = heading_of(result), title_line(result)
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
        heat = _heat(matrix.part, matrix, shades, result, below)
        more = f", {matrix.part}" if matrix.part else ""
        if not number:
            is_turned = tuple(heat.rows) == matrix.columns != matrix.rows
            caption = turned(caption) if is_turned else caption
            heat = heat._replace(title=heading, caption=f"{caption}{more}")
        yield heat
    for matrix in matrices_beside(result):
        yield _heat(matrix.name, matrix, _dim(matrix.figures), result)
    yield from percentiles(result)
    lines = (*level_lines(result), *below_lines([result], detailed=True))
    if lines:
        yield Prose(lines)


def _dim(figures: Mapping[Place, float], digits: int = 2) -> Shades:
    return {at: Shade(f"{value:.{digits}f}", "dim") for at, value in figures.items()}


def _heat(
    title: str, matrix: Matrix, shades: Shades, result: Result, lines: list[Line] | None = None
) -> Heat:
    """Returns the matrix as a block. If a sweep has very many columns, rows and columns are
    exchanged."""
    rows, columns = matrix.rows, matrix.columns
    found = [[shades.get(Place(row, column)) for column in columns] for row in rows]
    heat = Heat("", plain(title), "", "", rows, columns, found, lines or ())
    return heat.turned if result.sweep and len(columns) > MOST_COLUMNS else heat


def _sum(matrix: Matrix, unit: str) -> Line:
    """Makes a line with the sum of the figures. If some figures are missing, the line has the
    number of figures in the sum."""
    there = len(matrix.figures)
    of = f" of {there} of {matrix.cells} cells" if there < matrix.cells else ""
    return plain(f"SUM {matrix.name} {shown(matrix.total or 0.0, unit)}{of}", "dim")


def _used(result: Result) -> Iterator[Block]:
    """Yields the measured figures in percent of the theoretical ones, and the number of CPUs that
    the measuring process kept busy. Unknown values are left out."""
    *_, whole = matrices(result)
    for matrix in of_cells(result, f"{whole.name} of theoretical (%)", _percent):
        yield _heat(matrix.name, matrix, _dim(matrix.figures, 1), result)
    title = "CPU time of the measuring process"
    for matrix in of_cells(result, f"{whole.name} {title} (CPUs)", lambda cell: cell.cpus):
        if result.benchmark == "copy":
            yield Prose([plain(f"{title}: {next(iter(matrix.figures.values())):.2f} CPUs")])
        else:
            yield _heat(matrix.name, matrix, _dim(matrix.figures), result)


def _percent(cell: CellResult) -> float | None:
    return None if (used := utilised(cell)) is None else 100 * used

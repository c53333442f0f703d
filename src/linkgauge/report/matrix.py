"""Arranges a result as matrices of figures in nvbandwidth's layout, and formats figures."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

import msgspec

from linkgauge.model.documents.result import CellResult, Result
from linkgauge.model.transfer import Place
from linkgauge.model.units import unit_of


class Matrix(msgspec.Struct, frozen=True):
    """A matrix of figures by (row, column). The figures are in the result's base unit, or in the
    unit that the name states. Cells without a figure are absent.

    `total` is the sum of the figures, or None for latencies and without figures. `cells` is the
    number of figures that the matrix would have if every pair had been measured successfully.
    `part` names the matrix if a result has several (`total` for the headline figures); else it is
    empty."""

    name: str
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    figures: Mapping[Place, float]
    total: float | None = None
    cells: int = 0
    part: str = ""


def matrices(result: Result) -> Iterator[Matrix]:
    """Yields the matrices of a result's named parts, if any, then the matrix of headline
    figures."""
    rows = tuple(dict.fromkeys(cell.row for cell in result.cells))
    columns = tuple(dict.fromkeys(cell.column for cell in result.cells))
    if result.drawn is not None:
        rows, columns = in_order(rows), in_order(columns)
    elif set(rows) == set(columns):
        rows = columns = in_order(rows)
    undrawn = result.drawn.all - result.drawn.pairs if result.drawn is not None else 0
    found: list[tuple[str, dict[Place, float], int]] = []
    for number, name in enumerate(result.parts):
        figures: dict[Place, float] = {
            cell.place: part.summary.median
            for cell in result.cells
            for part in cell.parts
            if part.transfer == number and part.summary is not None
        }
        cells = sum(number < len(cell.transfers) for cell in result.cells)
        found.append((name, figures, cells))
    known = ((cell.place, cell.headline) for cell in result.cells)
    headline = {place: figure for place, figure in known if figure is not None}
    found.append(("total" if result.parts else "", headline, len(result.cells)))
    adds_up = not result.sweep and unit_of(result.unit).better == "higher"
    for part, figures, there in found:
        cells = there + undrawn
        total = sum(figures.values()) if figures and adds_up else None
        name = f"{result.benchmark}_{part}" if part else result.benchmark
        yield Matrix(name, rows, columns, figures, total, cells, part)


def matrix_of(name: str, figures: Mapping[Place, float]) -> Matrix:
    """Makes a matrix with the rows and columns for which there are figures."""
    rows, columns = (tuple(dict.fromkeys(axis)) for axis in zip(*figures, strict=True))
    if all(label.isdecimal() for label in (*rows, *columns)):
        rows, columns = in_order(rows), in_order(columns)
    return Matrix(name, rows, columns, figures)


def of_cells(
    result: Result, name: str, figure: Callable[[CellResult], float | None]
) -> Iterator[Matrix]:
    """Yields a matrix with one figure from each cell. Yields nothing if no cell has the figure."""
    figures = {cell.place: value for cell in result.cells if (value := figure(cell)) is not None}
    if figures:
        yield matrix_of(name, figures)


def in_order(labels: Iterable[str]) -> tuple[str, ...]:
    """Returns the labels, sorted by the numbers in the labels."""
    return tuple(sorted(labels, key=_natural))


def _natural(label: str) -> tuple[int, str]:
    return (int(label), "") if label.isdecimal() and len(label) < 10 else (1 << 62, label)


def shown(value: float, unit: str) -> str:
    """Formats a figure for people, without its unit. The figure has two decimals, or three digits
    if it is small."""
    scaled = value / unit_of(unit).scale
    return f"{scaled:.2f}" if scaled >= 1 or scaled == 0 else f"{scaled:.3g}"


def brief(value: float, unit: str) -> str:
    """Formats a figure for people, without its unit. The figure has four digits, or three if it is
    small."""
    scaled = value / unit_of(unit).scale
    for least, decimals in ((999.95, 0), (99.995, 1), (1, 2)):
        if abs(scaled) >= least:
            return f"{scaled:.{decimals}f}"
    return shown(value, unit)

"""Chooses how each result is shown. Neighbouring results with at most one row share a table. Each
other result is shown as a matrix."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import groupby
from statistics import median
from typing import Literal, NamedTuple

from linkgauge.model.documents.result import CellResult, Result
from linkgauge.model.units import COLLECTIVE

from .shading import sign_of

MOST_COLUMNS = 16
"""A matrix with more columns or rows is large."""
UNIFORM = 0.05
"""Figures that differ by no more than this share of their median are much the same."""
Form = Literal[
    "rows", "columns", "summary", "matrix", "sizes", "levels", "collectives", "transfers"
]
"""The form of a result: a line for each cell; a line for each row of cells; a line for each matrix;
the matrix; a column for each size; the levels that a curve shows; collectives by size; each
transfer as written."""
FEW = 2
"""The most cells of a result that is shown cell by cell."""
FEW_SETTINGS = 4
"""The most cells of a sweep, or of a single column, that is shown cell by cell."""


Large = Literal["summary", "reduced", "uniform", "whole"]
"""Which large matrices become one line of a summary: any (`summary` on a terminal, `reduced` on a
page), only `uniform` matrices, or none."""
_REDUCED: tuple[Large, ...] = ("summary", "reduced")


class SharedTable(NamedTuple):
    """Results that are shown in one table."""

    form: Form
    results: tuple[Result, ...]


class _Alike(NamedTuple):
    """A key for results. Neighbouring results with equal keys share a table. `only` is None, or the
    number of a result that shares no table."""

    form: Form
    only: int | None
    backend: str
    unit: str = ""
    size: int = 0
    columns: tuple[str, ...] = ()
    meaning: str = ""


def has_figures(result: Result) -> bool:
    return any(cell.summary for cell in result.cells)


def together(results: Sequence[Result], large: Large) -> Iterator[SharedTable]:
    """Groups the results that have figures, in their order. Results of one benchmark at several
    sizes are in one group."""
    by_benchmark: dict[tuple[str, str], list[Result]] = {}
    for result in filter(has_figures, results):
        by_benchmark.setdefault((result.benchmark, result.backend), []).append(result)
    found: list[tuple[_Alike, Sequence[Result]]] = []
    for own in by_benchmark.values():
        of_sizes = own[0].unit != COLLECTIVE.symbol and len({one.size for one in own}) > 1
        for group in [own] if of_sizes else [[one] for one in own]:
            found.append((_alike(group, len(found), large), group))
    for alike, neighbours in groupby(found, key=lambda each: each[0]):
        yield SharedTable(alike.form, tuple(one for _, own in neighbours for one in own))


def _alike(own: Sequence[Result], number: int, large: Large) -> _Alike:
    result = own[0]
    if len(own) > 1:
        sizes = tuple(str(size) for size in sorted({one.size for one in own}))
        only = number if len(sizes) > MOST_COLUMNS else None
        return _Alike("sizes", only, result.backend, result.unit, 0, sizes)
    form = form_of(result, large)
    if form == "rows":
        return _Alike(form, None, result.backend)
    if form == "columns":
        columns, meaning = columns_of(result), meaning_of(result.title)
        return _Alike(form, None, result.backend, result.unit, result.size, columns, meaning)
    if form == "summary":
        return _Alike(form, None, result.backend, result.unit, result.size)
    return _Alike(form, number, result.backend)


def form_of(result: Result, large: Large) -> Form:
    """Returns the form in which a result of one size is shown."""
    if result.unit == COLLECTIVE.symbol:
        return "collectives"
    if result.benchmark == "copy":
        return "transfers"
    if result.levels:
        return "levels"
    rows, columns = rows_of(result), columns_of(result)
    if result.parts and len(columns) == 1 < len(rows):
        return "matrix"  # a row would show the total alone
    few = FEW_SETTINGS if result.sweep or len(columns) == 1 else FEW
    if len(result.cells) <= few and result.drawn is None:
        return "rows"
    if is_large(result) and (large in _REDUCED or (large == "uniform" and is_uniform(result))):
        return "summary"
    return "columns" if len(rows) == 1 or (result.sweep and len(rows) <= FEW) else "matrix"


def is_uniform(result: Result) -> bool:
    """Whether all cells passed with nearly equal figures and no cell stands out."""
    figures = [figure for cell in result.cells if (figure := cell.headline) is not None]
    alike = max(figures) - min(figures) <= UNIFORM * median(figures)
    return alike and all(cell.status == "pass" and not sign_of(cell) for cell in result.cells)


def is_large(result: Result) -> bool:
    """Whether the matrix has too many rows or columns to be shown. A sweep is large only if it has
    a single column, or if rows and columns are the same settings."""
    rows, columns = rows_of(result), columns_of(result)
    if not result.sweep or len(columns) == 1 or set(rows) & set(columns):
        return max(len(rows), len(columns)) > MOST_COLUMNS
    return False


def rows_of(result: Result) -> tuple[str, ...]:
    return tuple(dict.fromkeys(cell.row for cell in result.cells))


def columns_of(result: Result) -> tuple[str, ...]:
    return tuple(dict.fromkeys(cell.column for cell in result.cells))


def meaning_of(title: str) -> str:
    """Returns the meaning of the columns, read from the title of a matrix: `device`, `memory of
    node`, `by number of threads`."""
    found = re.search(r"\(row\)\s*(?:,|->|<->|<-)?\s*([^()]*)\(column\)", title)
    found = found or re.search(r"(\w+)\(column\)", title)
    return found[1] if found else ""


def cells_of(results: Sequence[Result]) -> Iterator[tuple[Result, CellResult]]:
    for result in results:
        for cell in result.cells:
            yield result, cell

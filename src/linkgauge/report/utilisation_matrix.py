"""Matrices of what each cell used: its share of the theoretical figure, in percent, and CPUs."""

from __future__ import annotations

from rich.console import Group, RenderableType
from rich.text import Text

from linkgauge.judge.utilisation import utilisation
from linkgauge.model.result import Result

from .folding import Entry
from .matrix import matrices
from .run_text import MOST_COLUMNS, UNKNOWN, matrix_lines


def render_utilisation(result: Result) -> RenderableType | None:
    """The headline matrix as percent of the theoretical figures; None if none is known."""
    shares = utilisation(result)
    if not shares:
        return None
    *_, matrix = matrices(result)
    figures = {at: f"{share:.1%}".removesuffix("%") for at, share in shares.items()}
    lines = matrix_lines(matrix, lambda at: Entry(figures[at]) if at in figures else UNKNOWN)
    return Group(Text(f"{matrix.name} of theoretical (%)"), *lines, Text())


def render_cpus(result: Result) -> RenderableType | None:
    """The CPUs that the measuring process kept busy; None if no cell knows."""
    known = {cell.place: cell.cpus for cell in result.cells}
    figures = {at: f"{cpus:.2f}" for at, cpus in known.items() if cpus is not None}
    if not figures:
        return None
    title = "CPU time of the measuring process"
    if result.benchmark == "copy":
        return Text(f"{title}: {figures[result.cells[0].place]} CPUs")
    *_, matrix = matrices(result)
    lines = matrix_lines(
        matrix,
        lambda at: Entry(figures[at]) if at in figures else UNKNOWN,
        turned=result.sweep and len(matrix.columns) > MOST_COLUMNS,
    )
    return Group(Text(f"{matrix.name} {title} (CPUs)"), *lines, Text())

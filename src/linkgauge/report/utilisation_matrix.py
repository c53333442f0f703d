"""Matrices of each cell's share of the theoretical figure, in percent."""

from __future__ import annotations

from rich.console import Group, RenderableType
from rich.text import Text

from linkgauge.judge.utilisation import utilisation
from linkgauge.model.result import Result

from .matrix import matrices
from .run_text import UNKNOWN, matrix_lines


def render_utilisation(result: Result) -> RenderableType | None:
    """The headline matrix as percent of the theoretical figures; None if none is known."""
    shares = utilisation(result)
    if not shares:
        return None
    *_, matrix = matrices(result)
    figures = {at: f"{share:.1%}".removesuffix("%") for at, share in shares.items()}
    lines = matrix_lines(matrix, lambda at: (figures[at], "default") if at in figures else UNKNOWN)
    return Group(Text(f"{matrix.name} of theoretical (%)"), *lines, Text())

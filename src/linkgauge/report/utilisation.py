"""Matrices of how much of the theoretical figure each cell reached, in percent."""

from __future__ import annotations

from rich.console import Group, RenderableType
from rich.text import Text

from linkgauge.judge.utilisation import utilisation
from linkgauge.model.result import Result

from .matrix import ABSENT, matrices

_WIDTH = 10


def render_utilisation(result: Result) -> RenderableType | None:
    """The result's headline matrix as percent of theoretical figures; None where none is known."""
    shares = utilisation(result)
    if not shares:
        return None
    *_, matrix = matrices(result)
    width = max(_WIDTH, *(len(column) + 2 for column in matrix.columns))
    label = max(4, *(len(row) + 1 for row in matrix.rows))
    lines = [
        Text(f"{matrix.name} of theoretical (%)"),
        Text(" " * label + "".join(f"{column:>{width}}" for column in matrix.columns), "cyan"),
    ]
    for row in matrix.rows:
        line = Text(f"{row:>{label - 1}} ", style="cyan")
        for column in matrix.columns:
            share = shares.get((row, column))
            text = ABSENT if share is None else f"{share:.1%}".removesuffix("%")
            line.append(f"{text:>{width}}", "dim" if share is None else "default")
        lines.append(line)
    return Group(*lines, Text())

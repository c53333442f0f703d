"""What the cells of a round carry together, of benchmarks whose cells are all measured at once."""

from __future__ import annotations

from collections.abc import Iterator

from linkgauge.model.result import CellResult, Result
from linkgauge.model.units import unit_of

from .blocks import Line, plain
from .matrix import brief

LEAST = 17
"""Cells from which no matrix shows their sum."""


def round_lines(result: Result) -> Iterator[Line]:
    """A line for each round: how many cells, their sum, and its share of what is expected."""
    rounds: dict[int, list[CellResult]] = {}
    for cell in result.cells:
        if cell.round is not None and cell.headline is not None and "->" in cell.row:
            rounds.setdefault(cell.round, []).append(cell)
    if result.better != "higher" or sum(map(len, rounds.values())) < LEAST:
        return
    name = "bisection" if "bisect" in result.benchmark else "round"
    for number, cells in rounds.items():
        which = f"{name} {number + 1} of {len(rounds)}: " if len(rounds) > 1 else ""
        figure = sum(cell.headline or 0.0 for cell in cells)
        shown = f"{brief(figure, result.unit)} {unit_of(result.unit).shown}"
        yield plain(f"{which}{len(cells)} at once carry {shown}{_share(figure, cells)}", "dim")


def _share(figure: float, cells: list[CellResult]) -> str:
    expected = [cell.expected.figure if cell.expected else None for cell in cells]
    if not all(expected):
        return ""
    return f", {figure / sum(one or 0.0 for one in expected):.1%} of what their links carry"

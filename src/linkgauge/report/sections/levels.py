"""Latency of memory against the size: the plateaus are the levels of the memory hierarchy."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from linkgauge.model.result import Result
from linkgauge.model.units import format_size, unit_of
from linkgauge.report import charts
from linkgauge.report.blocks import Figure
from linkgauge.report.results import label, pivot, title_of

if TYPE_CHECKING:
    import altair as alt

MOST_ROWS = 8


def chart_of_levels(result: Result) -> Figure:
    """The curve of each row, with thick lines where it is flat."""
    unit = unit_of(result.unit)
    shown = list(dict.fromkeys(cell.row for cell in result.cells))[:MOST_ROWS]
    rows: list[dict[str, object]] = []
    for cell in result.cells:
        if cell.headline is not None and cell.row in shown:
            size = cell.transfers[0].bytes_moved(result.size)
            figure = float(f"{cell.headline / unit.scale:.5g}")
            says = f"{label(cell.row)}, {format_size(size)}: {figure:.4g} {unit.shown}"
            rows.append({"x": size, "y": figure, "series": label(cell.row), "says": says})
    sizes = sorted({int(str(row["x"])) for row in rows})
    most = max(sizes, default=1)
    flat: list[dict[str, object]] = [
        {
            "x": level.least, "x2": level.most or most, "y": level.seconds / unit.scale,
            "series": label(one.row),
            "says": f"{label(one.row)}, level {level.number}: {level.seconds / unit.scale:.3g} "
            f"{unit.shown}",
        }
        for one in result.levels
        if one.row in shown
        for level in one.levels
    ]  # fmt: skip
    y = f"{unit.quantity} ({unit.shown})"
    title = title_of(f"{result.benchmark}: latency by size; thick lines are the plateaus found")

    def draw(data: Any) -> alt.LayerChart:
        return charts.levels(data, flat, y, marks=sizes)

    return Figure(title, title, draw, rows, pivot(y, "size", rows, size=True))

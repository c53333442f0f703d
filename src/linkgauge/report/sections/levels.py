"""Shows the levels of memory: latencies by size, with the plateaus that were found."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import islice

from linkgauge.model.curves import Level
from linkgauge.model.documents.result import Result
from linkgauge.model.units import (
    format_size,
    unit_of,
)
from linkgauge.report import chart_specs
from linkgauge.report.blocks import Block, ChartFigure, Line, Prose, Span, line, plain
from linkgauge.report.curves import chart, curves_of
from linkgauge.report.matrix import shown
from linkgauge.report.results import heading, label, title_line

from .figures import ResultView
from .sizes import MOST_CURVES, sizes_in


def levels(view: ResultView) -> Iterator[Block]:
    """Yields a table of a curve's levels, and the chart of the levels."""
    result = view.first
    yield Prose((heading(result), plain(title_line(result))))
    chart = _chart_of_levels(result)
    yield chart._replace(lines=(*chart.lines, *view.below()), anchor=view.anchor)


def _chart_of_levels(result: Result) -> ChartFigure:
    """Makes a chart of latencies with a curve for each row. A thick line marks a plateau, which is
    a level of the memory hierarchy."""
    unit = unit_of(result.unit)
    curves = dict(islice(curves_of([result]).items(), MOST_CURVES))
    sizes = sizes_in(curves)
    flat = [
        {
            "x": level.least, "x2": level.most or max(sizes, default=1),
            "y": level.seconds / unit.scale, "series": label(one.row),
            "says": f"{label(one.row)}, level {level.number}: {level.seconds / unit.scale:.3g} "
            f"{unit.shown}",
        }
        for one in result.levels
        if one.row in curves
        for level in one.levels
    ]  # fmt: skip
    title = f"{result.benchmark}: latency by size; thick lines are the plateaus found"
    define = partial(chart_specs.levels, plateaus=flat, marks=sizes)
    return chart(title, curves, unit, define)._replace(lines=tuple(level_lines(result)))


def level_lines(result: Result) -> Iterator[Line]:
    """Yields the levels of each row: `level 1: 1.10 ns up to 32 KiB`."""
    for one in result.levels:
        named = ", ".join(_named(level, result.unit) for level in one.levels)
        yield line(Span(f"{one.row} ", "name"), named)


def _named(level: Level, unit: str) -> str:
    most = f"up to {format_size(level.most)}" if level.most else f"from {format_size(level.least)}"
    return f"level {level.number}: {shown(level.seconds, unit)} {unit_of(unit).shown} {most}"

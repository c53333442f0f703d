"""Latency of memory against the size: the plateaus are the levels of the memory hierarchy."""

from __future__ import annotations

from functools import partial
from itertools import islice

from linkgauge.model.result import Result
from linkgauge.model.units import unit_of
from linkgauge.report import charts
from linkgauge.report.blocks import Figure
from linkgauge.report.curves import chart, curves_of
from linkgauge.report.results import label

MOST_ROWS = 8


def chart_of_levels(result: Result) -> Figure:
    """The curve of each row, with thick lines where it is flat."""
    unit = unit_of(result.unit)
    curves = dict(islice(curves_of([result]).items(), MOST_ROWS))
    sizes = sorted({size for curve in curves.values() for size in curve})
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
    return chart(title, curves, unit, partial(charts.levels, plateaus=flat, marks=sizes))

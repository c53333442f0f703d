"""Shows figures against the number of copies or threads that work at the same time. Says from which
number on the figure hardly rises."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from linkgauge.model.documents.result import Result
from linkgauge.model.units import Unit, unit_of
from linkgauge.report import chart_specs
from linkgauge.report.blocks import Block, plain
from linkgauge.report.curves import Curves, chart
from linkgauge.report.results import label

from . import OneRun, Section

FEWEST = 3
"""The fewest numbers in a curve."""
MOST_SERIES = 8
ENOUGH = 0.95
"""The share of the highest rate that counts as having reached it."""


def _blocks(one: OneRun) -> Iterator[Block]:
    for result in one.run.results:
        curves = _curves(result)
        if curves:
            unit = unit_of(result.unit)
            across = "threads" if "threads" in result.title else "at the same time"
            title = f"{result.benchmark}: {unit.quantity} by how many work at the same time"
            made = chart(title, curves, unit, partial(chart_specs.counts, x=across), across)
            yield made._replace(lines=[plain(text) for text in _enough(curves, unit)])


def _curves(result: Result) -> Curves:
    """Returns curves of a result whose columns are numbers of copies or threads. Returns no curves
    for any other result."""
    unit = unit_of(result.unit)
    columns = dict.fromkeys(cell.column for cell in result.cells)
    counted = all(column.isdecimal() and len(column) < 7 for column in columns)
    counts = "threads" in result.title or "at once" in result.title or "many" in result.title
    if not (result.sweep and counted and counts) or unit.better != "higher":
        return {}
    curves: Curves = {}
    for cell in result.cells:
        if cell.headline is not None:
            curves.setdefault(label(cell.row), {})[int(cell.column)] = cell.headline
    kept = {row: curve for row, curve in curves.items() if len(curve) >= FEWEST}
    return dict(list(kept.items())[:MOST_SERIES])


def _enough(curves: Curves, unit: Unit) -> Iterator[str]:
    """Yields, for each row, the number of copies or threads above which the figure hardly rises."""
    for row, curve in curves.items():
        most = max(curve.values())
        knee = min(count for count, value in curve.items() if value >= ENOUGH * most)
        yield f"{row}: {knee} reach {ENOUGH:.0%} of the most, {most / unit.scale:.4g} {unit.shown}"


SECTION = Section("concurrency", "By concurrency", 60, of_run=_blocks)

"""Figures against the size: of what was measured at several sizes, of copies that are timed size by
size, and of collectives."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from linkgauge.model.result import Result, Run
from linkgauge.model.stats.hockney import LEAST
from linkgauge.model.units import BANDWIDTH, COLLECTIVE, Unit, unit_of
from linkgauge.report import charts
from linkgauge.report.blocks import Block, Figure, Prose, plain
from linkgauge.report.curves import Curves, chart, curves_of, extremes
from linkgauge.report.sweep_text import line_lines

from . import OneRun, Section

MOST_PATHS = 8
"""Curves of one chart; of more, the lowest, the median and the highest figures."""
MOST_CHARTS = 12
MOST_LINES = 4


def _blocks(one: OneRun) -> Iterator[Block]:
    """A chart for each benchmark, those of bandwidth first, and the lines that fit."""
    found = list(_found(one.run))
    for name, unit, curves in found[:MOST_CHARTS]:
        lines = [line for line in one.run.lines if line.benchmark == name]
        below = list(line_lines(lines, MOST_LINES))
        yield _figure(name, unit, curves)._replace(lines=below)
    if len(found) > MOST_CHARTS:
        names = ", ".join(name for name, _, _ in found[MOST_CHARTS:])
        yield Prose([plain(f"also measured by size: {names}", "dim")])


def _found(run: Run) -> Iterator[tuple[str, Unit, Curves]]:
    """Those of several sizes, but for the curves of levels, which stand among the figures."""
    by_name: dict[tuple[str, str], list[Result]] = {}
    for result in run.results:
        if not any(cell.operation == "chase" for cell in result.cells):
            by_name.setdefault((result.benchmark, result.backend), []).append(result)
    for (name, _), results in by_name.items():
        unit, curves = unit_of(results[0].unit), curves_of(results)
        if len({size for curve in curves.values() for size in curve}) >= LEAST:
            yield name, BANDWIDTH if unit == COLLECTIVE else unit, curves


def _figure(name: str, unit: Unit, curves: Curves) -> Figure:
    sizes = sorted({size for curve in curves.values() for size in curve})
    what = f"{len(curves)} paths" if len(curves) > 1 else "1 path"
    if len(curves) > MOST_PATHS:
        curves = extremes(curves)
        what = f"the lowest, the median and the highest of {what}"
    draw = partial(charts.sizes, log=unit.better == "lower", marks=tuple(sizes))
    return chart(f"{name}: {unit.quantity} by size, {what}", curves, unit, draw)


SECTION = Section("sizes", "By size", 50, of_run=_blocks)

"""Shows figures by size, or by the number of concurrent copies or threads."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import islice

from linkgauge.model.curves import Level
from linkgauge.model.documents.result import Result, Run
from linkgauge.model.grouped import grouped, tabled
from linkgauge.model.stats.hockney import LEAST
from linkgauge.model.units import BANDWIDTH, COLLECTIVE, Unit, format_decimals, format_size, unit_of
from linkgauge.report import chart_specs
from linkgauge.report.blocks import Block, ChartFigure, Line, Prose, Span, line, plain
from linkgauge.report.curves import Curves, chart, curves_of, extremes
from linkgauge.report.results import heading, label, sizes_of, title_line
from linkgauge.report.words.size_lines import line_lines

from . import OneRun, Section
from .figures import ResultView

MOST_CURVES = 8
"""With more, only their extremes are shown."""
MOST_CHARTS = 12
MOST_LINES = 4


def _blocks(one: OneRun) -> Iterator[Block]:
    found = list(_found(one.run))
    for name, unit, curves in found[:MOST_CHARTS]:
        lines = [line for line in one.run.lines if line.benchmark == name]
        below = list(line_lines(lines, MOST_LINES))
        yield _figure(name, unit, curves)._replace(lines=below)
    if len(found) > MOST_CHARTS:
        names = ", ".join(name for name, _, _ in found[MOST_CHARTS:])
        yield Prose([plain(f"also measured by size: {names}", "dim")])


def _found(run: Run) -> Iterator[tuple[str, Unit, Curves]]:
    by_name = grouped(
        ((one.benchmark, one.backend), one)
        for one in run.results
        if not any(cell.does.follows_pointers for cell in one.cells)
    )
    for (name, _), results in by_name.items():
        sizes = {size for result in results for size in sizes_of(result)}
        curves = curves_of(results if len(sizes) >= LEAST else ())
        if len(_sizes(curves)) >= LEAST:
            unit = unit_of(results[0].unit)
            yield name, BANDWIDTH if unit == COLLECTIVE else unit, curves


def _sizes(curves: Curves) -> list[int]:
    return sorted({size for curve in curves.values() for size in curve})


def _figure(name: str, unit: Unit, curves: Curves) -> ChartFigure:
    sizes, what = _sizes(curves), f"{len(curves)} paths" if len(curves) > 1 else "1 path"
    if len(curves) > MOST_CURVES:
        curves = extremes(curves)
        what = f"the lowest, the median and the highest of {what}"
    define = partial(chart_specs.sizes, log=unit.better == "lower", marks=sizes)
    return chart(f"{name}: {unit.quantity} by size, {what}", curves, unit, define)


def levels(view: ResultView) -> Iterator[Block]:
    """Shows latency curves. Thick lines are plateaus: levels of the memory hierarchy."""
    result = view.first
    yield Prose((heading(result), plain(title_line(result))))
    unit = unit_of(result.unit)
    curves = dict(islice(curves_of([result]).items(), MOST_CURVES))
    sizes = _sizes(curves)
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
    lines = (*level_lines(result), *view.below())
    yield chart(title, curves, unit, define)._replace(lines=lines, anchor=view.anchor)


def level_lines(result: Result) -> Iterator[Line]:
    """Yields the levels of memory in each row: `level 1: 1.10 ns up to 32 KiB`."""
    for one in result.levels:
        named = ", ".join(_named(level, result.unit) for level in one.levels)
        yield line(Span(f"{one.row} ", "name"), named)


def _named(level: Level, unit: str) -> str:
    most = f"up to {format_size(level.most)}" if level.most else f"from {format_size(level.least)}"
    time = f"{format_decimals(level.seconds, unit)} {unit_of(unit).shown}"
    return f"level {level.number}: {time} {most}"


SECTION = Section("sizes", "By size", 50, of_run=_blocks)


FEWEST = 3
MOST_SERIES = 8
ENOUGH = 0.95


def _by_concurrency(one: OneRun) -> Iterator[Block]:
    for result in one.run.results:
        if curves := _curves(result):
            unit = unit_of(result.unit)
            across = "threads" if "threads" in result.title else "at the same time"
            title = f"{result.benchmark}: {unit.quantity} by how many work at the same time"
            made = chart(title, curves, unit, partial(chart_specs.counts, x=across), across)
            yield made._replace(lines=[plain(text) for text in _enough(curves, unit)])


def _curves(result: Result) -> Curves:
    unit = unit_of(result.unit)
    columns = dict.fromkeys(cell.column for cell in result.cells)
    counted = all(column.isdecimal() and len(column) < 7 for column in columns)
    counts = "threads" in result.title or "at once" in result.title or "many" in result.title
    if not (result.sweep and counted and counts) or unit.better != "higher":
        return {}
    curves = tabled(
        (label(cell.row), int(cell.column), cell.headline)
        for cell in result.cells
        if cell.headline is not None
    )
    kept = {row: curve for row, curve in curves.items() if len(curve) >= FEWEST}
    return dict(list(kept.items())[:MOST_SERIES])


def _enough(curves: Curves, unit: Unit) -> Iterator[str]:
    for row, curve in curves.items():
        most = max(curve.values())
        knee = min(count for count, value in curve.items() if value >= ENOUGH * most)
        yield f"{row}: {knee} reach {ENOUGH:.0%} of the most, {most / unit.scale:.4g} {unit.shown}"


CONCURRENCY = Section("concurrency", "By concurrency", 60, of_run=_by_concurrency)

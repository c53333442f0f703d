"""Shows figures against sizes, or against the number of concurrent copies or threads."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import islice

from linkgauge.model.curves import Level, SizeLine, SizePiece
from linkgauge.model.documents.result import Result, Run
from linkgauge.model.grouped import grouped, tabled
from linkgauge.model.stats.hockney import LEAST, OFF
from linkgauge.model.units import (
    BANDWIDTH,
    COLLECTIVE,
    Unit,
    approximate_size,
    format_size,
    unit_of,
)
from linkgauge.report import chart_specs
from linkgauge.report.blocks import Block, ChartFigure, Line, Prose, Span, line, plain
from linkgauge.report.curves import Curves, chart, curves_of, extremes
from linkgauge.report.matrix import shown
from linkgauge.report.results import heading, label, sizes_of, title_line

from . import OneRun, Section
from .figures import ResultView

MOST_CURVES = 8
"""With more, only their extremes are shown."""
MOST_CHARTS = 12
MOST_LINES = 4
MOST_PATHS = 16
"""With more, only their extremes are shown."""
LEAST_SHOWN = 0.001
"""A line that is closer to the times is said to be within this."""
_NO_LINE = "no line fits"
_UNTOLD = "these sizes do not separate latency from bandwidth"
_LATENCY_ALONE = "a latency whatever the size"
_TOO_SHORT = "a latency too short to show"


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
        if len({size for result in results for size in sizes_of(result)}) < LEAST:
            continue
        unit, curves = unit_of(results[0].unit), curves_of(results)
        if len(_sizes(curves)) >= LEAST:
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
    """Shows a result's curves. Thick lines mark plateaus: levels of the memory hierarchy."""
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
    """Yields the levels of each row: `level 1: 1.10 ns up to 32 KiB`."""
    for one in result.levels:
        named = ", ".join(_named(level, result.unit) for level in one.levels)
        yield line(Span(f"{one.row} ", "name"), named)


def _named(level: Level, unit: str) -> str:
    most = f"up to {format_size(level.most)}" if level.most else f"from {format_size(level.least)}"
    return f"level {level.number}: {shown(level.seconds, unit)} {unit_of(unit).shown} {most}"


def line_lines(lines: Sequence[SizeLine], most: int = MOST_PATHS) -> Iterator[Line]:
    if len(lines) <= most:
        for one in lines:
            name = ", ".join(filter(None, (one.row, one.column)))
            yield line(Span(f"{name}  ", "name"), _sentence(one))
        return
    known = [one for one in lines if one.half_size is not None]
    if known:
        each = (
            _ends("latency", [one.latency for one in known], _time),
            _ends("bandwidth", [one.bandwidth for one in known], _rate),
            _ends("half of it at", [one.half_size for one in known], _size),
            _within(max(one.error for one in known)),
        )
        yield line(Span(_paths(len(known)), "name"), ", ".join(each))
    others = Counter(_lacks(one) for one in lines if one.half_size is None)
    for kind, count in others.items():
        yield line(Span(_paths(count), "name"), kind)


def _paths(count: int) -> str:
    return "1 path  " if count == 1 else f"{count} paths  "


def _ends(name: str, values: Sequence[float | None], shown: Callable[[float], str]) -> str:
    ends = sorted(value or 0.0 for value in values)
    return f"{name} {' to '.join(dict.fromkeys((shown(ends[0]), shown(ends[-1]))))}"


def _lacks(line: SizeLine) -> str:
    if line.error > OFF:
        return _NO_LINE
    if line.bandwidth is None:
        return _UNTOLD if line.latency is None else _LATENCY_ALONE
    return _TOO_SHORT if line.latency is None or line.half_size is None else ""


def _sentence(line: SizeLine) -> str:
    lacks, worst = _lacks(line), format_size(line.worst)
    if line.pieces:
        error = max(piece.error for piece in line.pieces)
        return f"time = {'; '.join(map(_piece, line.pieces))} ({_within(error)})"
    if lacks == _NO_LINE:
        return f"{lacks}: {line.error:.1%} off at {worst}"
    if lacks == _UNTOLD:
        return lacks
    at = "" if line.error < LEAST_SHOWN else f", worst at {worst}"
    within = f"({_within(line.error)}{at})"
    latency, rate = _time(line.latency or 0.0), f"bytes ÷ {_rate(line.bandwidth or 0.0)}"
    if lacks == _LATENCY_ALONE:
        return f"time = {latency}, whatever the size {within}"
    if lacks == _TOO_SHORT:
        return f"time = {rate}, with {lacks} at {format_size(line.sizes[0])} {within}"
    half = line.half_size or 0.0
    beyond = ", below the sizes measured" if half < line.sizes[0] else ""
    beyond = ", above the sizes measured" if half > line.sizes[-1] else beyond
    return (
        f"time = {latency} + {rate}; half of that rate is reached at {_size(half)}{beyond} {within}"
    )


def _piece(piece: SizePiece) -> str:
    """Returns `14.1 µs at 8 B to 512 KiB`, or `20.4 µs + bytes ÷ 340 GB/s at 1 MiB to 512 MiB`."""
    terms = [_time(piece.latency)] if piece.latency else []
    terms += [f"bytes ÷ {_rate(piece.bandwidth)}"] if piece.bandwidth else []
    sizes = " to ".join(dict.fromkeys(map(format_size, (piece.least, piece.most))))
    return f"{' + '.join(terms)} at {sizes}"


def _within(error: float) -> str:
    return f"within {max(error, LEAST_SHOWN):.1%}"


def _size(size: float) -> str:
    return approximate_size(round(size))


_TIMES = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns"))


def _time(seconds: float) -> str:
    scale, unit = next((one for one in _TIMES if seconds >= one[0]), _TIMES[-1])
    return f"{seconds / scale:.2f} {unit}"


def _rate(rate: float) -> str:
    return f"{shown(rate, BANDWIDTH.symbol)} {BANDWIDTH.shown}"


SECTION = Section("sizes", "By size", 50, of_run=_blocks)


FEWEST = 3
MOST_SERIES = 8
ENOUGH = 0.95


def _by_concurrency(one: OneRun) -> Iterator[Block]:
    for result in one.run.results:
        curves = _curves(result)
        if curves:
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

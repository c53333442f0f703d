"""Shows figures against the size: results at several sizes with a fitted line, copies, collectives,
and latencies with the levels of memory."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import partial

from linkgauge.model.curves import SizeLine
from linkgauge.model.documents.result import Result, Run
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
from linkgauge.report.results import sizes_of

from . import OneRun, Section

MOST_CURVES = 8
"""The most curves in one chart. If there are more, the lowest, the median and the highest figures
are shown."""
MOST_CHARTS = 12
MOST_LINES = 4
MOST_PATHS = 16
"""The most paths that are shown. If there are more, the lowest, the median and the highest figures
are shown."""
LEAST_SHOWN = 0.001
"""The least deviation of a line from the times that is shown; a closer line is said to be within
this."""
_NO_LINE = "no line fits"
_UNTOLD = "these sizes do not separate latency from bandwidth"
_LATENCY_ALONE = "a latency whatever the size"
_TOO_SHORT = "a latency too short to show"


def _blocks(one: OneRun) -> Iterator[Block]:
    """Yields a chart for each benchmark, bandwidths first, and the fitted lines."""
    found = list(_found(one.run))
    for name, unit, curves in found[:MOST_CHARTS]:
        lines = [line for line in one.run.lines if line.benchmark == name]
        below = list(line_lines(lines, MOST_LINES))
        yield _figure(name, unit, curves)._replace(lines=below)
    if len(found) > MOST_CHARTS:
        names = ", ".join(name for name, _, _ in found[MOST_CHARTS:])
        yield Prose([plain(f"also measured by size: {names}", "dim")])


def _found(run: Run) -> Iterator[tuple[str, Unit, Curves]]:
    """Yields the curves of benchmarks that have several sizes. Pointer chases are left out, because
    the section of figures shows them."""
    by_name: dict[tuple[str, str], list[Result]] = {}
    for result in run.results:
        if not any(cell.does.follows_pointers for cell in result.cells):
            by_name.setdefault((result.benchmark, result.backend), []).append(result)
    for (name, _), results in by_name.items():
        if len({size for result in results for size in sizes_of(result)}) < LEAST:
            continue
        unit, curves = unit_of(results[0].unit), curves_of(results)
        if len(sizes_in(curves)) >= LEAST:
            yield name, BANDWIDTH if unit == COLLECTIVE else unit, curves


def sizes_in(curves: Curves) -> list[int]:
    return sorted({size for curve in curves.values() for size in curve})


def _figure(name: str, unit: Unit, curves: Curves) -> ChartFigure:
    sizes, what = sizes_in(curves), f"{len(curves)} paths" if len(curves) > 1 else "1 path"
    if len(curves) > MOST_CURVES:
        curves = extremes(curves)
        what = f"the lowest, the median and the highest of {what}"
    define = partial(chart_specs.sizes, log=unit.better == "lower", marks=sizes)
    return chart(f"{name}: {unit.quantity} by size, {what}", curves, unit, define)


def line_lines(lines: Sequence[SizeLine], most: int = MOST_PATHS) -> Iterator[Line]:
    """Yields the fitted line of each path in words. If there are more than `most` paths, yields
    only the ranges of their latencies, bandwidths and half sizes."""
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
    """Returns a remark on what a fitted line cannot show, or an empty text."""
    if line.error > OFF:
        return _NO_LINE
    if line.bandwidth is None:
        return _UNTOLD if line.latency is None else _LATENCY_ALONE
    return _TOO_SHORT if line.latency is None or line.half_size is None else ""


def _sentence(line: SizeLine) -> str:
    lacks, worst = _lacks(line), format_size(line.worst)
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


def _within(error: float) -> str:
    return f"within {max(error, LEAST_SHOWN):.1%}"


def _size(size: float) -> str:
    return approximate_size(round(size))


_TIMES = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns"))


def _time(seconds: float) -> str:
    """Returns a time in the unit that suits its length."""
    scale, unit = next((one for one in _TIMES if seconds >= one[0]), _TIMES[-1])
    return f"{seconds / scale:.2f} {unit}"


def _rate(rate: float) -> str:
    return f"{shown(rate, BANDWIDTH.symbol)} {BANDWIDTH.shown}"


SECTION = Section("sizes", "By size", 50, of_run=_blocks)

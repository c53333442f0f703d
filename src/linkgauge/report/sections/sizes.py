"""Figures against the size: of what was measured at several sizes, of copies that are timed size by
size, and of collectives."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

from linkgauge.model.busbw import bandwidths
from linkgauge.model.result import Result, Run
from linkgauge.model.stats.hockney import LEAST
from linkgauge.model.units import BANDWIDTH, COLLECTIVE, Unit, format_size, unit_of
from linkgauge.report import charts
from linkgauge.report.blocks import Block, Figure, Prose, plain
from linkgauge.report.results import label, pivot, title_of
from linkgauge.report.sweep_text import Curves, curves_of, extremes, line_lines

from . import OneRun, Section

MOST_PATHS = 8
"""Curves of one chart; of more, the lowest, the median and the highest figures."""
MOST_CHARTS = 12
MOST_LINES = 4
_OF_SIZES = ("copy-ping-pong", "timed-copy")


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
    by_name: dict[tuple[str, str], list[Result]] = {}
    for result in run.results:
        by_name.setdefault((result.benchmark, result.backend), []).append(result)
    for (name, _), results in by_name.items():
        unit = unit_of(results[0].unit)
        if unit == COLLECTIVE:
            curves, unit = _of_collectives(results), BANDWIDTH
        elif any(cell.operation in _OF_SIZES for cell in results[0].cells):
            curves = _of_cells(results)
        else:
            curves = curves_of(results)
        if len({size for curve in curves.values() for size in curve}) >= LEAST:
            yield name, unit, curves


def _of_cells(results: Sequence[Result]) -> Curves:
    """Of cells that have sizes of their own."""
    curves: Curves = {}
    for result in results:
        for cell in result.cells:
            if cell.headline is not None:
                size = cell.transfers[0].bytes_moved(result.size)
                curves.setdefault(cell.row, {})[size] = cell.headline
    return curves


def _of_collectives(results: Sequence[Result]) -> Curves:
    """Bus bandwidth, as nccl-tests define it."""
    curves: Curves = {}
    for result in results:
        for cell in result.cells:
            own = bandwidths(cell)
            if own is not None and own.bus is not None and cell.status == "pass":
                name = f"{cell.row}, {len(cell.transfers)} devices"
                curves.setdefault(name, {})[cell.transfers[0].scale] = own.bus
    return curves


def _figure(name: str, unit: Unit, curves: Curves) -> Figure:
    sizes = sorted({size for curve in curves.values() for size in curve})
    what = f"{len(curves)} paths" if len(curves) > 1 else "1 path"
    if len(curves) > MOST_PATHS:
        curves = extremes(curves, sizes)
        what = f"the lowest, the median and the highest of {what}"
    rows = [
        {
            "x": size, "y": float(f"{value / unit.scale:.5g}"), "series": label(path),
            "says": f"{label(path)}, {format_size(size)}: {value / unit.scale:.4g} {unit.shown}",
        }
        for path, curve in curves.items()
        for size, value in sorted(curve.items())
    ]  # fmt: skip
    title = title_of(f"{name}: {unit.quantity} by size, {what}")
    y = f"{unit.quantity} ({unit.shown})"
    draw = partial(charts.sizes, y=y, log=unit.better == "lower", marks=tuple(sizes))
    return Figure(title, title, draw, rows, pivot(y, "size", rows, size=True))


SECTION = Section("sizes", "By size", 50, of_run=_blocks)

"""Shows how latencies of single iterations vary, and rows whose latency falls as the load grows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

from linkgauge.model.documents.result import CellResult, Result
from linkgauge.model.grouped import grouped
from linkgauge.model.stats.summary import known_percentile, percentile
from linkgauge.model.units import format_decimals, format_size, unit_of
from linkgauge.report import chart_specs
from linkgauge.report.blocks import Block, ChartFigure, Column, Entry, Line, Table, plain
from linkgauge.report.matrix import load
from linkgauge.report.results import figure, label, title_of
from linkgauge.report.words.bars import histogram

from . import OneRun, Section

PERCENTILES = (0.50, 0.95, 0.99, 0.999)
MOST_CHARTS = 6
MOST_CELLS = 48
"""If a result has more cells, the table of percentiles shows only the first column's cells."""
POINTS = 120
"""The evenly spaced points of a curve. Further points lie at the highest percentiles."""
_TAIL = tuple(1 - 10 ** (-step / 8) for step in range(8, 25))
FEWEST = 64


def _blocks(one: OneRun) -> Iterator[Block]:
    found = [(result, cells) for result in one.run.results if (cells := _iterated(result))]
    for result, _ in found:
        yield from percentiles(result)
    for result, cells in _most_telling(found)[:MOST_CHARTS]:
        yield _distribution(result, cells)


def _iterated(result: Result) -> list[CellResult]:
    return [cell for cell in result.cells if cell.does.is_single and cell.samples]


def percentiles(result: Result) -> Iterator[Table]:
    """Shows percentiles of a result. A percentile needs at least one sample beyond it."""
    cells = _iterated(result)
    if not cells:
        return
    left_out = f", only {cells[0].column}" if len(cells) > MOST_CELLS else ""
    first = [cell for cell in cells if cell.column == cells[0].column][:MOST_CELLS]
    rows = [_row(result, cell) for cell in (first if left_out else cells)]
    heads = (
        Column("path"), *(Column(f"p{100 * each:g}", True) for each in PERCENTILES),
        Column("worst", True), Column("samples", True),
        Column("histogram, log scale", rank=1),
    )  # fmt: skip
    unit = unit_of(result.unit).shown
    caption = f"{result.benchmark}{left_out}: percentiles of single samples ({unit})"
    yield Table(plain(label(caption)), heads, rows, sortable=True)


def _row(result: Result, cell: CellResult) -> tuple[Entry, ...]:
    ordered = sorted(cell.samples)
    return (
        Entry(label(f"{cell.row}, {cell.column}")),
        *(figure(known_percentile(ordered, each), result.unit) for each in PERCENTILES),
        figure(ordered[-1], result.unit),
        Entry(f"{len(ordered):,}", len(ordered)),
        Entry(histogram(cell.samples), tone="dim"),
    )


def _most_telling(
    found: Sequence[tuple[Result, Sequence[CellResult]]],
) -> list[tuple[Result, list[CellResult]]]:
    telling = []
    for result, cells in found:
        first = [c for c in cells if c.column == cells[0].column and len(c.samples) >= FEWEST]
        if ordered := sorted(first, key=lambda cell: cell.headline or 0.0):
            few = (ordered[0], ordered[len(ordered) // 2], ordered[-1], max(ordered, key=_tail))
            telling.append((result, list(dict.fromkeys(few))))
    return telling


def _tail(cell: CellResult) -> float:
    return percentile(sorted(cell.samples), 0.99) / (cell.headline or 1.0)


def _distribution(result: Result, cells: Sequence[CellResult]) -> ChartFigure:
    unit = unit_of(result.unit)
    rows: list[dict[str, object]] = []
    for cell in cells:
        name = label(f"{cell.row}, {cell.column}" if len(result.cells) > 1 else result.benchmark)
        rows += _curve(sorted(cell.samples), unit.scale, name, unit.shown)
    size = f" {format_size(result.size)}" if result.size > 1 else ""
    heads = (Column("path"), Column("share", True), Column(unit.shown, True))
    lines = [
        (Entry(str(row["series"])), Entry(f"{row['y']:.1%}"), Entry(f"{row['x']:.4g}"))
        for row in rows if "says" in row
    ]  # fmt: skip
    return ChartFigure(
        title_of(f"{result.benchmark}{size}: distribution of single samples"),
        title_of(f"Cumulative distribution of {result.benchmark}, {len(cells)} paths"),
        chart_specs.cdf(f"{unit.quantity} ({unit.shown}), at most"),
        rows,
        Table(plain("percentiles of these paths"), heads, lines),
    )


def _curve(
    ordered: Sequence[float], scale: float, name: str, unit: str
) -> Iterator[dict[str, object]]:
    shares = sorted({*(n / POINTS for n in range(POINTS + 1)), *_TAIL, *PERCENTILES})
    before = None
    for each in shares:
        value = percentile(ordered, each) / scale
        row: dict[str, object] = {"x": float(f"{value:.5g}"), "y": round(each, 5), "series": name}
        if each in PERCENTILES and known_percentile(ordered, each) is not None:
            row["says"] = f"{name}: p{100 * each:g} {value:.4g} {unit}"
        elif before == row["x"] and each not in (0, 1):
            continue
        before = row["x"]
        yield row


def falling_lines(result: Result) -> Iterator[Line]:
    """Yields a line wherever a latency falls from one load to the next, and the two 95% intervals
    do not overlap. If no latency falls, yields a line that says so."""
    rows = grouped((cell.row, cell) for cell in result.cells)
    several = {name: cells for name, cells in rows.items() if any(map(load, cells))}
    falls = [fall for cells in several.values() for fall in _falls(cells, result.unit)]
    known = [cell for cells in several.values() for cell in cells if _interval(cell)]
    if len(known) > 1 and not falls:
        yield plain("no latency falls by more than its 95% interval as the load grows", "dim")
    yield from (plain(fall, "warn") for fall in falls)


def _falls(cells: Sequence[CellResult], unit: str) -> Iterator[str]:
    known = [(cell, bounds) for cell in cells if (bounds := _interval(cell))]
    for (before, (least, _)), (after, (_, most)) in pairwise(known):
        if most < least:
            ends = (f"{_figure(cell, unit)} at {cell.column}" for cell in (before, after))
            yield f"{after.row} falls as the load grows: from {' to '.join(ends)}"


def _interval(cell: CellResult) -> tuple[float, float] | None:
    return cell.summary.ci95 if cell.summary else None


def _figure(cell: CellResult, unit: str) -> str:
    return f"{format_decimals(cell.headline or 0.0, unit)} {unit_of(unit).shown}"


SECTION = Section("latency", "Latency: percentiles and distributions", 40, of_run=_blocks)

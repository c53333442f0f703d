"""What is said of latencies besides their figures: the levels of a memory hierarchy, and the
bandwidth that loads the memory meanwhile."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import pairwise

from linkgauge.model.curves import Level
from linkgauge.model.result import CellResult, Result
from linkgauge.model.units import format_size, unit_of

from .beside import load
from .blocks import Line, Span, line, plain
from .matrix import shown


def level_lines(result: Result) -> Iterator[Line]:
    """The levels of each row of a curve: `level 1: 1.10 ns up to 32 KiB`."""
    for one in result.levels:
        named = ", ".join(_named(level, result.unit) for level in one.levels)
        yield line(Span(f"{one.row} ", "name"), named)


def _named(level: Level, unit: str) -> str:
    most = f"up to {format_size(level.most)}" if level.most else f"from {format_size(level.least)}"
    return f"level {level.number}: {shown(level.seconds, unit)} {unit_of(unit).shown} {most}"


def falling_lines(result: Result) -> Iterator[Line]:
    """Where a row's latency falls as the load grows, by more than the intervals of neighbours in
    load allow; that none does, if intervals tell."""
    rows: defaultdict[str, list[CellResult]] = defaultdict(list)
    for cell in result.cells:
        rows[cell.row].append(cell)
    several = {name: cells for name, cells in rows.items() if any(map(load, cells))}
    falls = [fall for cells in several.values() for fall in _falls(cells, result.unit)]
    known = [cell for cells in several.values() for cell in cells if _interval(cell)]
    if len(known) > 1 and not falls:
        yield plain("no latency falls by more than its interval as the load grows", "dim")
    yield from (plain(f"falls as the load grows: {fall}", "warn") for fall in falls)


def _falls(cells: Sequence[CellResult], unit: str) -> Iterator[str]:
    known = [(cell, bounds) for cell in cells if (bounds := _interval(cell))]
    for (before, (least, _)), (after, (_, most)) in pairwise(known):
        if most < least:
            figures = " after ".join(_figure(cell, unit) for cell in (after, before))
            yield f"{after.row} at {after.column}: {figures} at {before.column}"


def _interval(cell: CellResult) -> tuple[float, float] | None:
    return cell.summary.ci95 if cell.summary else None


def _figure(cell: CellResult, unit: str) -> str:
    return f"{shown(cell.headline or 0.0, unit)} {unit_of(unit).shown}"

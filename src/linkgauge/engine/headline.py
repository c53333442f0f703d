"""A cell's figure of one sample, by the cell's report."""

from __future__ import annotations

from collections.abc import Iterable

from linkgauge.backends.protocol import Timing
from linkgauge.model.result import Definition
from linkgauge.model.transfer import Cell, Report

from .sustained import sustained


def headline(
    cell: Cell, size: int, timing: Timing, loops: int, definition: Definition | None = None
) -> float:
    """The bandwidth of one sample in bytes/s; that of a total follows this definition."""
    moved = [counted * loops for counted in cell.counted(size)]
    if cell.report.is_first:
        return moved[0] / timing.seconds[0]
    if not cell.report.is_total:
        return sum(own / each for own, each in zip(moved, timing.seconds, strict=True))
    rates = None
    if (definition or definition_of(cell, (timing,))) == "sustained":
        rates = sustained(timing.progress, moved)
    return sum(moved) / timing.span if rates is None else sum(rates)


def definition_of(cell: Cell, timings: Iterable[Timing]) -> Definition | None:
    """How a total's figures are computed, the same for all samples; None for any other report."""
    if not cell.report.is_total:
        return None
    if cell.report is Report.SPAN:
        return "span"
    alike = [1] * len(cell.transfers)
    together = all(sustained(timing.progress, alike) is not None for timing in timings)
    return "sustained" if together else "serial"

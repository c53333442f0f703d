"""Shows a chart of each figure of an accelerator's configurations, as bars with intervals."""

from __future__ import annotations

from collections.abc import Iterator

from linkgauge.benchmarks.vm import Aspect
from linkgauge.judge.compare.configurations import ConfigurationComparison
from linkgauge.judge.compare.run_comparison import RunCell
from linkgauge.model.units import unit_of
from linkgauge.report import chart_specs
from linkgauge.report.blocks import Block, ChartFigure, Column, Entry, Table, plain
from linkgauge.report.results import label
from linkgauge.report.sections import Section, SeveralRuns

from .configurations import entry_of, kind_of


def _bars(several: SeveralRuns) -> Iterator[Block]:
    yield from (_chart(one, *of) for one in several.comparisons for of in one.aspects.items())


def _chart(one: ConfigurationComparison, aspect: Aspect, cell: RunCell) -> ChartFigure:
    unit, name = unit_of(cell.unit), label(aspect.name)
    labels = [label(side.name) for side in one.found.sides]
    rows: list[dict[str, object]] = []
    lines = []
    for at, (own, side) in enumerate(zip(labels, cell.sides, strict=True)):
        if side is None or side.figure is None:
            continue
        entry, kind, middle = entry_of(cell, at), kind_of(cell, at), side.figure
        ends = (side.low or middle, middle, side.high or middle)
        low, x, high = (float(f"{end / unit.scale:.6g}") for end in ends)
        says = f"{own}: {entry.text} ({unit.shown}, {kind})"
        rows.append({"series": own, "x": x, "low": low, "high": high, "kind": kind, "says": says})
        lines.append((Entry(own), entry, Entry(kind)))
    title = f"{name} on {label(one.accelerator)}, {cell.better} is better"
    heads = (Column("configuration"), Column(unit.shown, True), Column(f"against {labels[0]}"))
    table = Table(plain(label(cell.benchmark)), heads, lines)
    return ChartFigure(title, title, chart_specs.bars(f"{name} ({unit.shown})"), rows, table)


SECTION = Section("differences", "Differences", 25, of_runs=_bars)

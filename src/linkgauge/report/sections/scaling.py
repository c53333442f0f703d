"""How a collective scales with the number of devices, and where it bends."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from linkgauge.judge.scaling import scaling_of
from linkgauge.model.collective import Collective
from linkgauge.model.result import Run
from linkgauge.model.scaling import Scaling
from linkgauge.model.units import BANDWIDTH
from linkgauge.report import charts
from linkgauge.report.blocks import Block, Figure, line_of
from linkgauge.report.results import pivot
from linkgauge.report.scale_text import told_lines

from . import OneRun, Section


def _blocks(one: OneRun) -> Iterator[Block]:
    if len(_numbers(one.run)) < 2:
        return
    scaling = scaling_of(one.run)
    rows = list(_rows(scaling))
    if not rows:
        return
    knee = (
        [{"x": scaling.knee.gpus, "says": f"knee at {scaling.knee.gpus}"}] if scaling.knee else []
    )
    title = f"{scaling.collective.collective}: bus bandwidth by number of devices"
    table = pivot("bus bandwidth (GB/s)", "devices", rows)
    told = [line_of(text) for text in told_lines(scaling)]
    yield Figure(title, title, partial(charts.scaling, knee=knee), rows, table, told)


def _numbers(run: Run) -> set[int]:
    """How many devices took part in the collectives."""
    return {
        len(cell.transfers)
        for result in run.results
        for cell in result.cells
        if isinstance(cell.operation, Collective)
    }


def _rows(scaling: Scaling) -> Iterator[dict[str, object]]:
    for count in scaling.counts:
        expected = count.expected.achievable
        for name, value in (("measured", count.plateau), ("expected", expected)):
            if value is not None:
                figure = float(f"{value / BANDWIDTH.scale:.5g}")
                says = f"{count.gpus} devices, {name}: {figure:.4g} {BANDWIDTH.shown}"
                yield {"x": count.gpus, "y": figure, "series": name, "says": says}


SECTION = Section("scaling", "Scaling", 65, of_run=_blocks)

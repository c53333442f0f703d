"""Adds the report's section on the scaling of a collective."""

from __future__ import annotations

from collections.abc import Iterator

from linkgauge.model.operations.collective import Collective
from linkgauge.report.blocks import Block
from linkgauge.report.rows import OneRun
from linkgauge.report.sections import Section


def _of_run(one: OneRun) -> Iterator[Block]:
    cells = (cell for result in one.run.results for cell in result.cells)
    numbers = {len(cell.transfers) for cell in cells if isinstance(cell.operation, Collective)}
    if len(numbers) <= 1:
        return
    from .scaling import scaling_of
    from .sections import blocks

    if (scaling := scaling_of(one.run)).counts:
        yield from blocks(scaling)


SECTION = Section("scaling", "Scaling", 65, of_run=_of_run)

"""Reports on runs that repeat their benchmarks for hours."""

from __future__ import annotations

from collections.abc import Iterable

from linkgauge.report.blocks import Block
from linkgauge.report.rows import OneRun
from linkgauge.report.sections import Section


def _blocks(one: OneRun) -> Iterable[Block]:
    if one.run.soak is None:
        return ()
    from .section import blocks

    return blocks(one.run.soak)


SECTION = Section("soak", "Over the time", 15, of_run=_blocks, on_screen=True)

"""The check and the report section for another tool's run: their code loads only for such a run."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from linkgauge.judge.findings import Evidence, Finding
from linkgauge.report.blocks import Block
from linkgauge.report.rows import OneRun
from linkgauge.report.sections import Section


def check_tool(evidence: Evidence) -> Iterator[Finding]:
    if evidence.tool is not None:
        from .checks import check

        yield from check(evidence, evidence.tool)


def _blocks(one: OneRun) -> Iterable[Block]:
    if not one.run.tool:
        return ()
    from .section import blocks

    return blocks(one)


SECTION = Section("tool", "The tool that measured it", 15, of_run=_blocks, on_screen=True)

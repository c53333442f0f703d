"""Adds a report section on AI workloads. Loads the section's code only if a run has workloads."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from linkgauge.model.documents.result import Result
from linkgauge.report.blocks import Block, Line, Prose, plain
from linkgauge.report.rows import OneRun
from linkgauge.report.sections import Section


def _lines(result: Result, detailed: bool) -> Iterable[Line]:
    if not any(cell.work is not None for cell in result.cells):
        return ()
    from .section import workload_lines

    return workload_lines(result, detailed)


def _blocks(one: OneRun) -> Iterator[Block]:
    for result in one.run.results:
        if lines := list(_lines(result, detailed=True)):
            yield Prose([plain(f"{result.benchmark}: {result.title}", "strong"), *lines])


SECTION = Section("workloads", "Which link matters here?", 58, of_run=_blocks, below=_lines)

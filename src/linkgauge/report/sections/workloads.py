"""AI workloads: which part of the machine bounds each, and where its time goes."""

from __future__ import annotations

from collections.abc import Iterator

from linkgauge.report.blocks import Block, Prose, plain
from linkgauge.report.workload_text import workload_lines

from . import OneRun, Section


def _blocks(one: OneRun) -> Iterator[Block]:
    for result in one.run.results:
        lines = list(workload_lines(result))
        if lines:
            yield Prose([plain(f"{result.benchmark}: {result.title}", "strong"), *lines])


SECTION = Section("workloads", "Which link matters here?", 58, of_run=_blocks)

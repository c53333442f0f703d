"""What was not measured, and why; and what is to be said of cells besides their figures."""

from __future__ import annotations

from collections.abc import Iterator

from linkgauge.report.blocks import Block, Prose, plain
from linkgauge.report.run_notes import note_lines
from linkgauge.report.skips import reason_lines

from . import OneRun, Section

MOST = 40


def _blocks(one: OneRun) -> Iterator[Block]:
    lines = [*reason_lines(one.run), *note_lines(one.run)]
    if len(lines) > MOST:
        lines = [*lines[:MOST], plain(f"and {len(lines) - MOST} more, which run.json has", "dim")]
    if lines:
        yield Prose(lines)


SECTION = Section("notes", "Not measured, and notes", 85, of_run=_blocks)

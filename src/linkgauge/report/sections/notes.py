"""Shows which cells were not measured, with reasons, and the notes on cells."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from itertools import filterfalse

from linkgauge.model.documents.result import Run, Status
from linkgauge.model.grouped import grouped
from linkgauge.report.blocks import TONES, Block, Line, Prose, Span, line, plain
from linkgauge.report.forms import has_figures
from linkgauge.report.words.run_notes import note_lines
from linkgauge.report.words.sentences import first_of

from . import OneRun, Section

MOST_LINES = 40
MOST_REASONS = 6
MOST_NAMED = 2
_ORDER: tuple[Status, ...] = ("skip", "fail", "timeout", "error")


def _blocks(one: OneRun) -> Iterator[Block]:
    lines = [*reason_lines(one.run), *note_lines(one.run)]
    if len(lines) > MOST_LINES:
        rest = f"and {len(lines) - MOST_LINES} more, which run.json has"
        lines = [*lines[:MOST_LINES], plain(rest, "dim")]
    if lines:
        yield Prose(lines)


def reason_lines(run: Run, *, skipped: bool = True) -> Iterator[Line]:
    """Yields reasons: `skip  needs two devices: device_to_device_memcpy_read_ce and 3 more`. If
    `skipped` is false, those of skipped cells only if nothing was measured."""
    reasons: defaultdict[Status, list[tuple[str, str]]] = defaultdict(list)
    for result in filterfalse(has_figures, run.results):
        why, name = result.reason or "for no reason given", result.benchmark
        if not result.cells and result.status != "pass":
            reasons[result.status].append((why, name))
        for cell in result.cells:
            if cell.status != "pass":
                reasons[cell.status].append((cell.reason or why, name))
    leaves_out = not skipped and any(map(has_figures, run.results))
    for status in _ORDER[1:] if leaves_out else _ORDER:
        own = grouped(reasons[status])
        for reason, names in list(own.items())[:MOST_REASONS]:
            named = list(dict.fromkeys(names))
            few = first_of(named, ", ", MOST_NAMED if len(named) <= MOST_NAMED else 1)
            yield _line(status, f"{reason}: {few}")
        if (left := len(own) - MOST_REASONS) > 0:
            yield _line(status, f"for {left} more reasons, which run.json has")


def _line(status: Status, text: str) -> Line:
    return line(Span(status, TONES[status]), f"  {text}")


SECTION = Section("notes", "Not measured, and notes", 85, of_run=_blocks)

"""Shows which cells were not measured, with reasons, and the notes on cells."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from linkgauge.model.documents.result import Result, Run, Status
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


def reason_lines(run: Run) -> Iterator[Line]:
    """Yields reasons: `skip  needs two devices: device_to_device_memcpy_read_ce and 3 more`."""
    yield from _lines(run, _ORDER)


def failure_lines(run: Run) -> Iterator[Line]:
    """Yields the reasons of failures; also those of skipped cells if nothing was measured."""
    yield from _lines(run, _ORDER[1:] if any(map(has_figures, run.results)) else _ORDER)


def _lines(run: Run, statuses: Sequence[Status]) -> Iterator[Line]:
    found = ((*why, result.benchmark) for result in run.results for why in _why(result))
    reasons = grouped((status, (reason, name)) for status, reason, name in found)
    for status in statuses:
        own = grouped(reasons.get(status, ()))
        for reason, names in list(own.items())[:MOST_REASONS]:
            named = list(dict.fromkeys(names))
            few = first_of(named, ", ", MOST_NAMED if len(named) <= MOST_NAMED else 1)
            yield _line(status, f"{reason}: {few}")
        if (left := len(own) - MOST_REASONS) > 0:
            yield _line(status, f"for {left} more reasons, which run.json has")


def _why(result: Result) -> Iterator[tuple[Status, str]]:
    if has_figures(result):
        return
    if not result.cells and result.status != "pass":
        yield result.status, result.reason or "for no reason given"
    for cell in result.cells:
        if cell.status != "pass":
            yield cell.status, cell.reason or result.reason or "for no reason given"


def _line(status: Status, text: str) -> Line:
    return line(Span(status, TONES[status]), f"  {text}")


SECTION = Section("notes", "Not measured, and notes", 85, of_run=_blocks)

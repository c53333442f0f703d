"""Shows the cells that were not measured, with the reasons, and the notes on cells."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from linkgauge.model.documents.result import Result, Run, Status
from linkgauge.model.units import count_of
from linkgauge.report.blocks import TONES, Block, Line, Prose, Span, line, plain
from linkgauge.report.words.run_notes import MORE, note_lines

from . import OneRun, Section

MOST_LINES = 40
"""The most lines of a page."""
MOST_REASONS = 6
"""The most reasons for one status."""
MOST_NAMED = 2
"""The most benchmarks that are all named."""
_ORDER: tuple[Status, ...] = ("skip", "fail", "timeout", "error")


def _blocks(one: OneRun) -> Iterator[Block]:
    lines = [*reason_lines(one.run), *note_lines(one.run)]
    if len(lines) > MOST_LINES:
        rest = f"and {len(lines) - MOST_LINES} more, which run.json has"
        lines = [*lines[:MOST_LINES], plain(rest, "dim")]
    if lines:
        yield Prose(lines)


def reason_lines(run: Run, *, few: bool = False) -> Iterator[Line]:
    """Yields lines on benchmarks without figures: `skip  needs two devices:
    device_to_device_memcpy_read_ce and 3 more`. Failures come last. With `few`, one line covers all
    skipped benchmarks, without those that the time budget did not reach."""
    reasons: dict[Status, dict[str, dict[str, None]]] = {status: {} for status in _ORDER}
    for result in run.results:
        if few and result.cells and all(cell.kind == "budget" for cell in result.cells):
            continue
        for status, reason in _why(result):
            reasons[status].setdefault(reason, {})[result.benchmark] = None
    for status, found in reasons.items():
        if few and status == "skip" and len(found) > 1:
            yield _left_out(found)
            continue
        for reason, benchmarks in list(found.items())[:MOST_REASONS]:
            yield _line(status, f"{reason}: {_few(list(benchmarks))}")
        if (left := len(found) - MOST_REASONS) > 0:
            yield _line(status, f"for {left} more reasons, which run.json has")


def _why(result: Result) -> Iterator[tuple[Status, str]]:
    """Yields the statuses and reasons of a result without any figure."""
    if any(cell.summary for cell in result.cells):
        return
    if not result.cells and result.status != "pass":
        yield result.status, result.reason or "for no reason given"
    for cell in result.cells:
        if cell.status != "pass":
            yield cell.status, cell.reason or result.reason or "for no reason given"


def _left_out(found: Mapping[str, Collection[str]]) -> Line:
    """Makes one line about all skipped benchmarks: the most frequent reason, and the number of
    benchmarks with other reasons."""
    most = max(found, key=lambda reason: len(found[reason]))
    others = {name for reason in found if reason != most for name in found[reason]}
    short = most.partition(": ")[0].partition(" (")[0]
    many = f"{short} ({count_of(len(found[most]), 'benchmark')})"
    more = f"{count_of(len(found) - 1, 'more reason')} ({len(others)})"
    return _line("skip", f"{many} and {more}: {MORE}")


def _few(names: list[str]) -> str:
    """Returns up to two names, or the first name and the number of the others."""
    return ", ".join(names) if len(names) <= MOST_NAMED else f"{names[0]} and {len(names) - 1} more"


def _line(status: Status, text: str) -> Line:
    return line(Span(status, TONES[status]), f"  {text}")


SECTION = Section("notes", "Not measured, and notes", 85, of_run=_blocks)

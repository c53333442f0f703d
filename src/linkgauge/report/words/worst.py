"""Chooses the worst fact about a run, such as a lost rank, a failure or another finding."""

from __future__ import annotations

from collections.abc import Sequence
from operator import itemgetter

import msgspec

from linkgauge.judge.doctor import failed
from linkgauge.judge.findings import Finding
from linkgauge.judge.outcome import Outcome
from linkgauge.model.documents.result import Run, Status, Verdict
from linkgauge.model.units import count_of, format_decimals, unit_of
from linkgauge.report.blocks import TONES, Line, Span, line, text_of
from linkgauge.report.forms import cells_of

from .expectations import NOTHING, against, lowest_share, nothing_wrong
from .groups import FindingGroup, groups_of, headline
from .run_notes import naming

BROKEN: tuple[Status, ...] = ("error", "timeout", "fail")


class WorstOfRun(msgspec.Struct, frozen=True):
    """The worst fact about a run, stated by `what` and by the findings `equivalent`, if any.
    `group` explains the fact. `cause` is the headline of `group` if it differs from `what`."""

    what: Line
    group: FindingGroup | None = None
    cause: Line | None = None
    equivalent: Sequence[Finding] = ()


def worst_of(run: Run, outcome: Outcome) -> WorstOfRun | None:
    """Returns the worst fact, or None. The order is: a lost rank, too much heat, a finding `fail`,
    a cell that failed or is low, another finding, a cell that is perhaps low."""
    if run.lost is not None:
        return WorstOfRun(line(Span("lost", "bad"), f": {run.lost}; the run ended there"))
    if run.soak is not None and run.soak.stopped == "temperature":
        return WorstOfRun(line(Span("too hot", "bad"), f": {run.soak.reason}; the run ended there"))
    if not outcome.verdict:
        broken = _worst_cell(run, known=False) if outcome.unjudged and outcome.code else None
        return None if broken is None else WorstOfRun(broken)
    groups = groups_of(outcome.findings)
    low = _worst_cell(run, known=bool(groups)) if outcome.code or outcome.low else None
    if not failed(outcome.findings) and low is not None:
        of = (groups[0], headline(groups[0].equivalent)) if groups else ()
        return WorstOfRun(low, *of)
    perhaps = None if groups else _worst_low(run, "perhaps low")
    return worst_finding(groups) if perhaps is None else WorstOfRun(perhaps)


def short_verdict(run: Run, outcome: Outcome) -> str:
    """Returns a short verdict: `ok`, `not judged`, or what is wrong."""
    wrong = worst_of(run, outcome)
    word = NOTHING if nothing_wrong(run) == NOTHING else outcome.word
    return word if wrong is None else " ".join(text_of(wrong.what).split())


def worst_finding(groups: Sequence[FindingGroup]) -> WorstOfRun | None:
    said = [
        (equivalent, group)
        for group in groups
        for equivalent in (group.equivalent, *group.explained)
    ]
    if not said:
        return None
    equivalent, group = next((one for one in said if one[0][0].severity == "fail"), said[0])
    cause = None if equivalent is group.equivalent else headline(group.equivalent)
    return WorstOfRun(headline(equivalent), group, cause, equivalent)


def _worst_cell(run: Run, *, known: bool) -> Line | None:
    name = naming(run)
    broken = [(result, cell) for result, cell in cells_of(run.results) if cell.status in BROKEN]
    if broken:
        result, cell = broken[0]
        what = f" {name(result, cell)}: {cell.reason or ''}{more_of(broken)}"
        word = "fail" if cell.status == "fail" else f"fail {cell.status}"
        return line(Span(word, TONES[cell.status]), what)
    return _worst_low(run, "low", "" if known else "; no check explains it")


def _worst_low(run: Run, verdict: Verdict, why: str = "") -> Line | None:
    low = lowest_cells(run, verdict)
    if not low:
        return None
    share, _, where, reference = low[0]
    said = f" {where} reaches {share:.0%} of {reference}{more_of(low)}{why}"
    word = f"warn {verdict}" if verdict == "perhaps low" else verdict
    return line(Span(word, "warn"), said)


def more_of(found: Sequence[object]) -> str:
    return f", and {count_of(len(found) - 1, 'more cell')}" if len(found) > 1 else ""


def lowest_cells(run: Run, verdict: Verdict = "low") -> list[tuple[float, str, str, str]]:
    """Returns share, figure, name and reference of each cell with `verdict`, the lowest share
    first. The share is what part of the reference the figure reaches."""
    name = naming(run)
    found = [
        (low.share, f"{format_decimals(low.figure, result.unit)} {unit_of(result.unit).shown}",
         f"{name(result, cell)}{low.whose}", against(cell))
        for result, cell in cells_of(run.results)
        if cell.verdict == verdict and (low := lowest_share(cell)) is not None
    ]  # fmt: skip
    return sorted(found, key=itemgetter(0))

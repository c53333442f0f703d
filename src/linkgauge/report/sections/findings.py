"""Shows the doctor's findings with reasons and remedies. A cause stands above its symptoms."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

import msgspec

from linkgauge.judge.findings import Finding
from linkgauge.judge.outcome import Outcome
from linkgauge.model.grouped import grouped
from linkgauge.report.blocks import Block, Line, Problem, Prose, Span, line, plain
from linkgauge.report.files import judged_document
from linkgauge.report.results import SIMULATED
from linkgauge.report.words.groups import SEVERITIES, FindingGroup, groups_of, headline, subjects_of
from linkgauge.report.words.remedies import Command, RemedyText, Step, steps
from linkgauge.report.words.sentences import NAMED, first_of

TO_FIX, TO_INSPECT = "to fix it", "to inspect"
MOST_STEPS = 40


class Diagnosis(msgspec.Struct, frozen=True):
    """Findings, with their verdict for people (`conclusion`) and for programs (`outcome`)."""

    findings: Sequence[Finding]
    simulated: str | None = None
    conclusion: Sequence[Block] = ()
    outcome: Outcome = Outcome(0)


def diagnosis_blocks(diagnosis: Diagnosis) -> Iterator[Block]:
    if diagnosis.simulated is not None:
        yield Prose([line(SIMULATED, f" {diagnosis.simulated}")])
    yield from blocks(diagnosis.findings)
    if diagnosis.conclusion:
        yield Prose([()])
        yield from diagnosis.conclusion


def diagnosis_document(diagnosis: Diagnosis) -> str:
    word, code, _, undetectable = diagnosis.outcome.answer
    known = {"schema": "linkgauge.findings/1"}
    return judged_document(known, word, code, diagnosis.findings, undetectable)


def blocks(findings: Sequence[Finding], by: str = "doctor") -> Iterator[Block]:
    """Shows findings, then their counts, which begin with `by`. Joins findings that differ only in
    their subject, and shows each remedy once."""
    given: dict[tuple[Step, ...], str] = {}
    for group in groups_of(findings):
        for equivalent in (group.equivalent, *group.explained):
            yield once(problem_of(equivalent), equivalent[0].name, given)
    yield Prose([summary(findings, by)])


def once(problem: Problem, name: str, given: dict[tuple[Step, ...], str]) -> Problem:
    """Replaces a remedy by a reference if an earlier problem had the same one. `given` names the
    first problem of each remedy, and gets `name` if this is the first."""
    taken = tuple(problem.steps)
    if not taken or (first := given.setdefault(taken, name)) == name:
        return problem
    above = (_purpose(taken), plain(f"the same as for {first!r}, above"))
    return problem._replace(said=(*problem.said, above), steps=())


def problem_of(equivalent: Sequence[Finding]) -> Problem:
    first = equivalent[0]
    remedy = steps_of(first)
    whose = f", here for {first.subject}" if len(equivalent) > 1 else ""
    return Problem(
        first.severity,
        SEVERITIES[first.severity],
        f"{first.check}  {subjects_of(equivalent)}",
        plain(first.found),
        tuple(_said(first)),
        remedy,
        f"{_purpose(remedy)}{whose}",
    )


def _said(finding: Finding) -> Iterator[tuple[str, Line]]:
    if finding.why:
        yield "why", plain(finding.why)
    if finding.cells:
        yield "cells", plain(first_of(finding.cells, ", "))
    more = len(finding.lines) - NAMED
    for text in (*finding.lines[:NAMED], *([f"{more} more lines"] if more > 0 else ())):
        yield "log", plain(text)


def steps_of(finding: Finding) -> tuple[Step, ...]:
    return tuple(steps(finding.remedy[:MOST_STEPS]))


def _purpose(remedy: Sequence[Step]) -> str:
    """Returns TO_INSPECT if a remedy has only captions and read-only commands, else TO_FIX."""
    looks = all(
        step.only_looks if isinstance(step, Command)
        else isinstance(step, RemedyText) and step.text.endswith(":")
        for step in remedy
    )  # fmt: skip
    return TO_INSPECT if looks else TO_FIX


def brief(groups: Sequence[FindingGroup], below: FindingGroup | None = None) -> Iterator[Block]:
    """Yields a problem for each check and severity: its first finding with its reason, symptoms
    and, if it is one command, remedy. Of warnings of `below`'s check, yields only the subjects."""
    by_check = grouped(((one.first.check, one.first.severity), one) for one in groups)
    for (check, severity), (first, *others) in by_check.items():
        subjects = subjects_of(*(group.equivalent for group in (first, *others)))
        if below is not None and check == below.first.check and severity != "fail":
            found = plain("the check that gives the verdict, below, found this, too")
            yield Problem(severity, SEVERITIES[severity], f"{check}  {subjects}", found)
            continue
        problem = problem_of(first.equivalent)
        said = [each for each in problem.said if each[0] == "why"]
        said += [("symptom", headline(equivalent)) for equivalent in first.explained]
        if others:
            said.append(("likewise", plain(subjects_of(*(group.equivalent for group in others)))))
        alone = len(problem.steps) == 1 and isinstance(problem.steps[0], Command)
        yield problem._replace(said=said, steps=problem.steps if alone else ())


def summary(findings: Sequence[Finding], by: str = "doctor") -> Line:
    counts = Counter(finding.severity for finding in findings)
    shown = [Span(f"{counts[of]} {of}", tone) for of, tone in SEVERITIES.items() if counts[of]]
    listed = [span for one in shown for span in (Span(", "), one)][1:]
    return line(f"{by}: ", *(listed or [Span("nothing found", "good")]))

"""What the doctor found, for people and programs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

import msgspec
from rich.console import RenderableType
from rich.text import Text

from linkgauge.judge.findings import Finding, Severity

from .files import json_document
from .remedies import Command, Prose, Step, steps
from .remedy_text import Block, remedy_block
from .run_text import simulated
from .sentences import NAMED, first_of
from .wrapping import Hanging

INDENT = 4
"""Columns before what is said of a finding."""
TO_FIX, TO_LOOK = "to fix it", "to look"
_STYLES: dict[Severity, str] = {
    "fail": "bold red",
    "warn": "yellow",
    "note": "cyan",
    "unknown": "dim",
}


class Diagnosis(msgspec.Struct, frozen=True):
    """`simulated` is the name of a machine that does not exist; `conclusion` is the last lines of
    the run that was judged, if one was."""

    findings: Sequence[Finding]
    simulated: str | None = None
    conclusion: Sequence[RenderableType] = ()


class Group(msgspec.Struct, frozen=True):
    """Findings that differ only in their subject, and what else they explain, each likewise."""

    alike: Sequence[Finding]
    explained: Sequence[Sequence[Finding]] = ()

    @property
    def first(self) -> Finding:
        return self.alike[0]


def groups_of(findings: Iterable[Finding]) -> list[Group]:
    """The findings by their causes, in their order."""
    alike = list(alike_findings(findings))
    causes = {finding.name: group[0] for group in alike for finding in group}
    below: dict[Finding, list[list[Finding]]] = {}
    tops: list[list[Finding]] = []
    for group in alike:
        cause = _first_cause(group[0], causes)
        if cause is group[0]:
            tops.append(group)
        else:
            below.setdefault(cause, []).append(group)
    return [Group(group, below.get(group[0], ())) for group in tops]


def _first_cause(finding: Finding, causes: Mapping[str, Finding]) -> Finding:
    """What explains it, and what explains that, up to what nothing explains."""
    seen = {finding.name}
    while name := next((n for n in finding.explained_by if n in causes), None):
        finding = causes[name]
        if finding.name in seen:
            break
        seen.add(finding.name)
    return finding


def diagnosis_lines(diagnosis: Diagnosis) -> Iterator[RenderableType]:
    if diagnosis.simulated is not None:
        yield simulated().append(f" {diagnosis.simulated}")
    yield from finding_lines(diagnosis.findings)
    if diagnosis.conclusion:
        yield Text()
        yield from diagnosis.conclusion


def finding_lines(findings: Sequence[Finding], by: str = "doctor") -> Iterator[RenderableType]:
    """Each with its reason and remedy, and below it what it explains, then what `by` found in all;
    equal findings on several subjects are shown once."""
    given: dict[tuple[str, ...], str] = {}
    for group in groups_of(findings):
        for alike in (group.alike, *group.explained):
            first = alike[0]
            yield Hanging(headline(alike), INDENT)
            yield from _details(alike, given.get(first.remedy))
            given.setdefault(first.remedy, first.name)
    yield summary(findings, by)


def brief_lines(groups: Sequence[Group], below: Group | None = None) -> Iterator[RenderableType]:
    """Of each check its first finding in full: its headline, why it matters, a remedy of one
    command, and what it explains; of others their subjects alone, as of warnings of the check that
    is reported `below`."""
    by_check: dict[tuple[str, Severity], list[Group]] = {}
    for group in groups:
        by_check.setdefault((group.first.check, group.first.severity), []).append(group)
    for (check, severity), (first, *others) in by_check.items():
        if below is not None and check == below.first.check and severity != "fail":
            likewise = Text.assemble((severity, _STYLES[severity]), f" {check}  ")
            likewise.append(subjects_of(first, *others), "bold").append(": as below")
            yield Hanging(likewise, INDENT)
            continue
        yield from _brief(first)
        if others:
            yield _said("likewise", subjects_of(*others))


def _brief(group: Group) -> Iterator[RenderableType]:
    yield Hanging(headline(group.alike), INDENT)
    if group.first.why:
        yield _said("why", group.first.why)
    remedy = tuple(steps(group.first.remedy))
    if len(remedy) == 1 and isinstance(remedy[0], Command):
        label = Text(f"    {_purpose(remedy)}:", "dim")
        yield Block(remedy, len(label) + 1, label)
    for alike in group.explained:
        yield Hanging(Text("    explains ").append_text(headline(alike)), 2 * INDENT)


def subjects_of(*groups: Group) -> str:
    """The first subjects of all findings, and how many more there are."""
    return first_of([finding.subject for group in groups for finding in group.alike], ", ")


def diagnosis_document(diagnosis: Diagnosis) -> str:
    return json_document({"schema": "linkgauge.findings/1", "findings": diagnosis.findings})


def alike_findings(findings: Iterable[Finding]) -> Iterator[list[Finding]]:
    """Findings that differ only in subject (and its address in the remedy), in their order."""
    groups: dict[tuple[object, ...], list[Finding]] = {}
    for finding in findings:
        key = (finding.check, finding.severity, finding.found, finding.why, finding.lines)
        groups.setdefault(key, []).append(finding)
    yield from groups.values()


def headline(alike: Sequence[Finding]) -> Text:
    first = alike[0]
    return Text.assemble(
        (first.severity, _STYLES[first.severity]),
        f" {first.check}  ",
        (subjects_of(Group(alike)), "bold"),
        f": {first.found}",
    )


def _details(alike: Sequence[Finding], earlier: str | None) -> Iterator[RenderableType]:
    """The reason, the cells, the kernel's lines, and the remedy, unless the finding named `earlier`
    has given the same one."""
    first = alike[0]
    if first.why:
        yield _said("why", first.why)
    if first.cells:
        yield _said("cells", first_of(first.cells, ", "))
    yield from (_said("log", line) for line in first.lines[:NAMED])
    if len(first.lines) > NAMED:
        yield _said("log", f"{len(first.lines) - NAMED} more lines")
    if not first.remedy:
        return
    purpose = _purpose(tuple(steps(first.remedy)))
    if earlier is not None:
        yield _said(purpose, f"as {earlier}, above")
        return
    whose = f" (of {first.subject})" if len(alike) > 1 else ""
    yield Text(f"    {purpose}{whose}:", "dim")
    yield remedy_block(first.remedy, INDENT)


def _purpose(remedy: Sequence[Step]) -> str:
    """Commands that only look fix nothing; what a colon ends is said of them."""
    looks = all(
        step.only_looks if isinstance(step, Command)
        else isinstance(step, Prose) and step.text.endswith(":")
        for step in remedy
    )  # fmt: skip
    return TO_LOOK if looks else TO_FIX


def _said(what: str, text: str) -> Hanging:
    return Hanging(Text(f"    {what}: {text}", "dim"), 2 * INDENT)


def summary(findings: Sequence[Finding], by: str = "doctor") -> Text:
    """How many of each severity."""
    counts = Counter(finding.severity for finding in findings)
    line = Text(f"{by}: ")
    shown = [Text(f"{counts[by]} {by}", style) for by, style in _STYLES.items() if counts[by]]
    return line.append(Text(", ").join(shown) if shown else Text("nothing found", "green"))

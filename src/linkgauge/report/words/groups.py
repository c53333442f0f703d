"""Joins findings that differ only in their subject, and puts symptoms below their cause."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

import msgspec

from linkgauge.judge.findings import Finding, Severity
from linkgauge.model.grouped import grouped
from linkgauge.report.blocks import Line, Span, Tone, line

from .sentences import first_of

SEVERITIES: Mapping[Severity, Tone] = {
    "fail": "bad",
    "warn": "warn",
    "note": "name",
    "unknown": "dim",
    "waived": "dim",
}


class FindingGroup(msgspec.Struct, frozen=True):
    equivalent: Sequence[Finding]
    explained: Sequence[Sequence[Finding]] = ()

    @property
    def first(self) -> Finding:
        return self.equivalent[0]


def groups_of(findings: Iterable[Finding]) -> list[FindingGroup]:
    equivalent = equivalent_findings(findings)
    causes = {finding.name: group[0] for group in equivalent for finding in group}
    tops, below = list[list[Finding]](), dict[Finding, list[list[Finding]]]()
    for group in equivalent:
        cause, seen = group[0], {group[0].name}
        while name := next((n for n in cause.explained_by if n in causes), None):
            cause = causes[name]
            if cause.name in seen:
                break
            seen.add(cause.name)
        if cause is group[0]:
            tops.append(group)
        else:
            below.setdefault(cause, []).append(group)
    return [FindingGroup(group, below.get(group[0], ())) for group in tops]


def equivalent_findings(findings: Iterable[Finding]) -> Iterable[list[Finding]]:
    return grouped(
        ((one.check, one.severity, one.found, one.why, one.lines), one) for one in findings
    ).values()


def subjects_of(*equivalent: Sequence[Finding]) -> str:
    return first_of([finding.subject for findings in equivalent for finding in findings], ", ")


def of_waivers(findings: Iterable[Finding]) -> Iterator[str]:
    """Yields a line for each waived finding, and for each waiver without an effect."""
    for one in findings:
        if one.severity == "waived":
            by = f", {one.waived}" if one.waived else f": {one.why}"
            yield f"{one.check}  {one.subject}: {one.found}; waived{by}"
        elif one.check == "waiver":
            yield f"the waiver of {one.subject} {one.found}"


def headline(equivalent: Sequence[Finding]) -> Line:
    first = equivalent[0]
    return line(
        Span(first.severity, SEVERITIES[first.severity]),
        f" {first.check}  ",
        Span(subjects_of(equivalent), "strong"),
        f": {first.found}",
    )

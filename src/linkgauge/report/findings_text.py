"""What the doctor found, for people and programs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

import msgspec
from rich.text import Text

from linkgauge.judge.findings import Finding, Severity

from .files import json_document
from .run_text import simulated
from .sentences import NAMED, first_of

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
    conclusion: Sequence[Text] = ()


def diagnosis_lines(diagnosis: Diagnosis) -> Iterator[Text]:
    if diagnosis.simulated is not None:
        yield simulated().append(f" {diagnosis.simulated}")
    yield from finding_lines(diagnosis.findings)
    yield from diagnosis.conclusion


def finding_lines(findings: Sequence[Finding], by: str = "doctor") -> Iterator[Text]:
    """Each with its reason and remedy, then what `by` found in all; equal findings on several
    subjects are shown once."""
    given: dict[tuple[str, ...], str] = {}
    for alike in _alike(findings):
        first = alike[0]
        yield headline(alike)
        yield from _details(alike, given.get(first.remedy))
        given.setdefault(first.remedy, first.check)
    yield summary(findings, by)


def diagnosis_document(diagnosis: Diagnosis) -> str:
    return json_document({"schema": "linkgauge.findings/1", "findings": diagnosis.findings})


def _alike(findings: Iterable[Finding]) -> Iterator[list[Finding]]:
    """Findings that differ only in subject (and its address in the remedy), in their order."""
    groups: dict[tuple[str, ...], list[Finding]] = {}
    for finding in findings:
        key = (finding.check, finding.severity, finding.found, finding.why, *finding.lines)
        groups.setdefault(key, []).append(finding)
    yield from groups.values()


def headline(alike: Sequence[Finding]) -> Text:
    first = alike[0]
    return Text.assemble(
        (first.severity, _STYLES[first.severity]),
        f" {first.check}  ",
        (first_of([finding.subject for finding in alike], ", "), "bold"),
        f": {first.found}",
    )


def _details(alike: Sequence[Finding], earlier: str | None) -> Iterator[Text]:
    """The reason, the cells, the kernel's lines, and the remedy, unless check `earlier` has given
    the same one."""
    first = alike[0]
    if first.why:
        yield Text(f"    why: {first.why}", "dim")
    if first.cells:
        yield Text(f"    cells: {first_of(first.cells, ', ')}", "dim")
    yield from (Text(f"    log: {line}", "dim") for line in first.lines[:NAMED])
    if len(first.lines) > NAMED:
        yield Text(f"    log: {len(first.lines) - NAMED} more lines", "dim")
    if not first.remedy:
        return
    if earlier is not None:
        yield Text(f"    to mend it: as {earlier} above", "dim")
        return
    whose = f" (of {first.subject})" if len(alike) > 1 else ""
    yield Text(f"    to mend it{whose}:", "dim")
    yield from (Text(f"      {line}" if line else "") for line in first.remedy)


def summary(findings: Sequence[Finding], by: str = "doctor") -> Text:
    """How many of each severity."""
    counts = Counter(finding.severity for finding in findings)
    line = Text(f"{by}: ")
    shown = [Text(f"{counts[by]} {by}", style) for by, style in _STYLES.items() if counts[by]]
    return line.append(Text(", ").join(shown) if shown else Text("nothing found", "green"))

"""Writes a run as Markdown (GitHub's), JUnit XML or SARIF."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby, zip_longest
from operator import attrgetter
from typing import Any
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from linkgauge import __version__
from linkgauge.judge.findings import Finding, Severity
from linkgauge.model.cell_id import bytes_of, spoken
from linkgauge.model.hardware.part import Part
from linkgauge.model.printable import printable
from linkgauge.model.units import format_decimals, format_size, unit_of

from .blocks import Block, Column, Entry, Problem, Prose, ShownSection, line
from .files import json_document
from .forms import cells_of
from .render.markdown import as_markdown
from .results import SIMULATED, named, names_of, share, size_ends, table
from .rows import OneRun
from .sections.findings import Diagnosis
from .sections.findings import blocks as findings
from .sections.verdict import Closing, verdict
from .tables import CellRow, cell_rows, result_rows

_HEADS = (
    "Benchmark", "Backend", Column("Size", True), "Row", "Column", Column("Figure", True),
    Column("95 % interval", True), "Unit", Column("n", True), Column("Of expected", True),
    "Status", "Verdict", "Reason",
)  # fmt: skip


def run_markdown(one: OneRun) -> str:
    return as_markdown(f"linkgauge: {one.run.label} {one.run.id}".strip(), _blocks(one))


def _blocks(one: OneRun) -> Iterator[Block | ShownSection]:
    run, outcome = one.run, one.outcome
    if run.machine.simulated is not None:
        yield Prose([line(SIMULATED, f" {run.machine.simulated}")])
    for block in verdict(run, outcome, Closing()):
        # What to do stands below the findings, with all of its steps.
        yield block._replace(steps=()) if isinstance(block, Problem) else block
    yield table("", _HEADS, map(_entries, cell_rows(run)))
    if outcome.findings:
        yield ShownSection("findings", "Findings", tuple(findings(outcome.findings)))


def _entries(row: CellRow) -> Sequence[str | int | Entry | None]:
    figure, low, high = (
        "" if value is None else format_decimals(value, row.unit)
        for value in (row.figure, row.low, row.high)
    )
    return (
        row.benchmark, row.backend, row.size and format_size(row.size), row.row, row.column,
        figure, low and f"{low} – {high}", unit_of(row.unit).shown, row.n, share(row.share),
        row.status, row.verdict, row.reason,
    )  # fmt: skip


# A run as JUnit XML: a test suite for each benchmark, a test case for each cell.
#
# Elements and attributes are those that Jenkins' schema junit-10.xsd has.

DOCTOR = "doctor"


def summary_junit(one: OneRun) -> str:
    """Returns JUnit XML. A test case fails if its cell failed, is low, or ended with an error or a
    timeout. A failed check of the doctor is a failed test case (`doctor.CHECK`), too."""
    run = one.run
    suites = Element("testsuites", name="linkgauge")
    for name, result in zip(names_of(run.results), run.results, strict=True):
        where = ", ".join(part for part in (result.backend, size_ends(result)) if part)
        suite = suite_of(suites, f"{name} ({where})", run.started)
        for row, cell in zip_longest(result_rows(run, result), result.cells):
            _add_cell(suite, row, cell.seconds or 0.0 if cell else 0.0)
    failed = sorted(
        (one for one in one.outcome.findings if one.severity == "fail"), key=attrgetter("check")
    )
    if failed:
        suite = suite_of(suites, DOCTOR, run.started)
        for check, found in groupby(failed, key=attrgetter("check")):
            first, *others = found
            case = case_of(suite, DOCTOR, f"{DOCTOR}.{check}")
            lines = (line for o in (first, *others) for line in (_said(o), o.why, *o.remedy, ""))
            fail(case, "fail", _said(first), "\n".join(lines))
    return document_of(suites)


def document_of(suites: Element) -> str:
    for element in (*suites, suites):
        cases = [*element.iter("testcase")]
        element.set("tests", str(len(cases)))
        element.set("failures", str(len(element.findall(".//failure"))))
        element.set("errors", "0")
        element.set("time", f"{sum(float(case.get('time', 0)) for case in cases):.3f}")
    for suite in suites:
        suite.set("skipped", str(len(suite.findall(".//skipped"))))
    indent(suites)
    for element in suites.iter():
        element.attrib = {name: printable(value) for name, value in element.items()}
        element.text = element.text and printable(element.text, "\n")
    return f'<?xml version="1.0" encoding="utf-8"?>\n{tostring(suites, encoding="unicode")}\n'


def suite_of(suites: Element, name: str, started: str | None = None) -> Element:
    suite = SubElement(suites, "testsuite", name=name)
    if started is not None:
        suite.set("timestamp", started)
    return suite


def _add_cell(suite: Element, row: CellRow, seconds: float) -> None:
    name = f"{row.benchmark}[{row.row},{row.column}]" if row.row or row.column else row.benchmark
    case = case_of(suite, f"linkgauge.{row.backend}.{row.benchmark}", name, seconds)
    figure = _figure(row)
    if row.status == "skip":
        SubElement(case, "skipped", message=row.reason or "skipped")
    elif row.status in ("fail", "error", "timeout"):
        fail(case, row.status, row.reason or row.status, f"{row.transfers}\n{figure}")
    elif row.verdict == "low":
        fail(case, "low", figure, row.transfers)
    if figure:
        SubElement(case, "system-out").text = figure


def _said(finding: Finding) -> str:
    return f"{finding.subject}: {finding.found}"


def case_of(suite: Element, classname: str, name: str, seconds: float = 0.0) -> Element:
    return SubElement(suite, "testcase", classname=classname, name=name, time=f"{seconds:.3f}")


def fail(case: Element, kind: str, message: str, text: str) -> None:
    failure = SubElement(case, "failure", type=kind, message=message)
    failure.text = text.strip()


def _figure(row: CellRow) -> str:
    if row.figure is None:
        return ""
    unit = unit_of(row.unit).shown
    text = f"{format_decimals(row.figure, row.unit)} {unit}"
    if row.share is not None:
        best = format_decimals(row.nominal or row.expected or 0.0, row.unit)
        text += f", {row.share:.0%} of {best} {unit} expected"
    text += f", {row.verdict}" if row.status == "pass" else ""
    return f"{text}, SIMULATED" if row.simulated else text


SARIF_SCHEMA = (
    "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
)
_LEVELS: Mapping[Severity, str] = {"fail": "error", "warn": "warning", "note": "note"}
"""The levels of failures; what could not be read (`unknown`) is open, which has no level."""


def diagnosis_sarif(diagnosis: Diagnosis) -> str:
    outcome = diagnosis.outcome
    own = {"simulated": diagnosis.simulated, "verdict": outcome.word, "exit_code": outcome.code}
    return _log(diagnosis.findings, own)


def run_sarif(one: OneRun) -> str:
    run, outcome = one.run, one.outcome
    figures = [
        {"cell": spoken(result, cell), "bytes": bytes_of(cell, result.size), "status": cell.status,
         "share": cell.reached, "verdict": cell.verdict}
        for result, cell in cells_of(run.results)
    ]  # fmt: skip
    where = {
        "simulated": run.machine.simulated, "machine": named(run.machine), "run": run.id,
        "verdict": outcome.word, "exit_code": outcome.code, "figures": figures,
    }  # fmt: skip
    return _log(outcome.findings, where, f"linkgauge/{run.label}/{run.id}")


def _log(findings: Sequence[Finding], properties: Mapping[str, Any], run: str | None = None) -> str:
    rules = [*dict.fromkeys(finding.check for finding in findings)]
    driver = {"name": "linkgauge", "version": __version__, "rules": [{"id": one} for one in rules]}
    mark = f" {SIMULATED.text}" if properties.get("simulated") else ""
    results = [_result(finding, rules.index(finding.check), mark) for finding in findings]
    own = {"tool": {"driver": driver}, "results": results, "properties": properties}
    if run is not None:
        own["automationDetails"] = {"id": run}
    return json_document({"$schema": SARIF_SCHEMA, "version": "2.1.0", "runs": [own]})


def _result(finding: Finding, rule: int, mark: str) -> dict[str, Any]:
    level = _LEVELS.get(finding.severity)
    kind = finding.about.kind if isinstance(finding.about, Part) else "machine"
    place = {"name": finding.subject, "fullyQualifiedName": finding.subject, "kind": kind}
    said = "; ".join(filter(None, (finding.found, finding.why)))
    known = {
        "cells": finding.cells, "lines": finding.lines, "explained_by": finding.explained_by,
        "remedy": finding.remedy,
    }  # fmt: skip
    return {
        "ruleId": finding.check,
        "ruleIndex": rule,
        "kind": "open" if level is None else "fail",
        "level": level or "none",
        "message": {"text": f"{finding.subject}: {said}{mark}"},
        "locations": [{"logicalLocations": [place]}],
        "partialFingerprints": {"finding/v1": finding.name},
        "properties": {name: value for name, value in known.items() if value},
    }

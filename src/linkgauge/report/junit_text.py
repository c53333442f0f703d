"""A run as JUnit XML: a test suite for each benchmark, a test case for each cell."""

from __future__ import annotations

import re
from itertools import groupby
from operator import attrgetter
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from linkgauge.judge.findings import Finding
from linkgauge.model.units import unit_of

from .cell_sizes import names_of, size_ends
from .matrix import shown
from .rows import CellRow, JudgedRun, result_rows

DOCTOR = "doctor"
_FAILED = ("fail", "error", "timeout")
_INVALID = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that XML 1.0 cannot hold, not even as a reference."""


def summary_junit(judged: JudgedRun) -> str:
    """Cells that failed, that are low, or that an error or a timeout cost are failures, and so is
    each check of the doctor with a finding of severity `fail` (`doctor.CHECK`)."""
    run = judged.run
    suites = Element("testsuites", name="linkgauge")
    for name, result in zip(names_of(run.results), run.results, strict=True):
        where = ", ".join(part for part in (result.backend, size_ends(result)) if part)
        suite = suite_of(suites, f"{name} ({where})", run.started)
        for row in result_rows(run, result):
            _add_cell(suite, row)
    failed = sorted(
        (one for one in judged.outcome.findings if one.severity == "fail"), key=attrgetter("check")
    )
    if failed:
        suite = suite_of(suites, DOCTOR, run.started)
        for check, found in groupby(failed, key=attrgetter("check")):
            _add_check(suite, check, tuple(found))
    return document_of(suites)


def document_of(suites: Element) -> str:
    """The document, with the number of cases that failed or were skipped."""
    for suite in suites:
        _count(suite, suite)
    _count(suites, *suites)
    indent(suites)
    return f'<?xml version="1.0" encoding="utf-8"?>\n{tostring(suites, encoding="unicode")}\n'


def suite_of(suites: Element, name: str, started: str | None = None) -> Element:
    """A suite, with the time at which it began, if that is known."""
    suite = SubElement(suites, "testsuite", name=valid(name))
    if started is not None:
        suite.set("timestamp", valid(started))
    return suite


def _count(element: Element, *suites: Element) -> None:
    cases = [case for suite in suites for case in suite.iter("testcase")]
    element.set("tests", str(len(cases)))
    element.set("errors", "0")
    for name, tag in (("failures", "failure"), ("skipped", "skipped")):
        element.set(name, str(sum(case.find(tag) is not None for case in cases)))


def _add_cell(suite: Element, row: CellRow) -> None:
    name = f"{row.benchmark}[{row.row},{row.column}]" if row.row or row.column else row.benchmark
    case = case_of(suite, f"linkgauge.{row.backend}.{row.benchmark}", name)
    figure = _figure(row)
    if row.status == "skip":
        SubElement(case, "skipped", message=valid(row.reason or "skipped"))
    elif row.status in _FAILED:
        fail(case, row.status, row.reason or row.status, f"{row.transfers}\n{figure}")
    elif row.verdict == "low":
        fail(case, "low", figure, row.transfers)
    if figure:
        SubElement(case, "system-out").text = valid(figure)


def _add_check(suite: Element, check: str, found: tuple[Finding, ...]) -> None:
    case = case_of(suite, DOCTOR, f"{DOCTOR}.{check}")
    lines = [line for one in found for line in (_said(one), one.why, *one.remedy, "")]
    fail(case, "fail", _said(found[0]), "\n".join(lines))


def _said(finding: Finding) -> str:
    return f"{finding.subject}: {finding.found}"


def case_of(suite: Element, classname: str, name: str) -> Element:
    """A case of a suite."""
    return SubElement(suite, "testcase", classname=valid(classname), name=valid(name))


def fail(case: Element, kind: str, message: str, text: str) -> None:
    """Fails a case."""
    failure = SubElement(case, "failure", type=kind, message=valid(message))
    failure.text = valid(text.strip())


def _figure(row: CellRow) -> str:
    if row.figure is None:
        return ""
    unit = unit_of(row.unit).shown
    text = f"{shown(row.figure, row.unit)} {unit}"
    if row.expected is not None:
        text += f", {row.share:.0%} of {shown(row.expected, row.unit)} {unit} expected"
    return f"{text}, SIMULATED" if row.simulated else text


def valid(text: str) -> str:
    """The text without characters that XML cannot hold."""
    return _INVALID.sub("\ufffd", text)

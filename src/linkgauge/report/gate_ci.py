"""The gate's judgement for CI systems: JUnit XML, GitHub's annotations, Markdown."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from xml.etree.ElementTree import Element, SubElement

from linkgauge.judge.gate import FAILURES, Gate, Verdict
from linkgauge.model.printable import printable
from linkgauge.model.units import format_size

from .gate_text import unseen, why
from .junit_text import case_of, document_of, fail, suite_of
from .markdown_text import plain, table_row

_SKIPPED: tuple[Verdict, ...] = ("inconclusive", "blind", "not enough")
_LEVELS = {"inconclusive": "warning"}
"""Of annotations; failures are errors."""


def gate_junit(gate: Gate) -> str:
    """A suite for each benchmark, a case for each cell. What failed is a failure, what is
    inconclusive, blind or not enough is skipped."""
    suites = Element("testsuites", name="linkgauge gate")
    for (benchmark, backend, size), cells in groupby(gate.cells, key=lambda one: one.cell.sheet):
        suite = suite_of(suites, f"{benchmark} ({backend}, {format_size(size)})")
        for one in cells:
            cell = one.cell
            case = case_of(suite, f"linkgauge.{backend}.{benchmark}", cell.name)
            if one.verdict in FAILURES:
                fail(case, one.verdict.replace(" ", "-"), why(one), why(one))
            elif one.verdict in _SKIPPED:
                SubElement(case, "skipped", message=f"{one.verdict}: {why(one)}")
            elif one.loss is not None:
                SubElement(case, "system-out").text = why(one)
    return document_of(suites)


def gate_annotations(gate: Gate) -> Iterator[str]:
    """GitHub's workflow commands: an error for each failure, a warning for each inconclusive cell,
    and one for all that are blind. (docs.github.com: Workflow commands for GitHub Actions, setting
    an error message.)"""
    for one in gate.of(*FAILURES, "inconclusive"):
        level = _LEVELS.get(one.verdict, "error")
        title = _property(f"linkgauge: {one.verdict}")
        yield f"::{level} title={title}::{_data(f'{one.cell.name}: {why(one)}')}"
    if (sentence := unseen(gate)) is not None:
        yield f"::warning title={_property('linkgauge: blind')}::{_data(sentence)}"


def _data(text: str) -> str:
    """As @actions/core escapes the message of a command."""
    return printable(text).replace("%", "%25")


def _property(text: str) -> str:
    """As it escapes a property."""
    return _data(text).replace(":", "%3A").replace(",", "%2C")


def gate_markdown(gate: Gate) -> str:
    """A heading and a table of the cells that are not ok."""
    word = {0: "pass", 1: "fail", 3: "inconclusive"}.get(gate.code, "nothing compared")
    found = gate.of(*FAILURES, *_SKIPPED)
    lines = [f"# linkgauge gate: {word}", "", f"{len(gate.cells)} cells, {len(found)} not ok", ""]
    if (sentence := unseen(gate)) is not None:
        lines += [plain(sentence), ""]
    if found:
        lines += [table_row(("Verdict", "Cell", "Size", "Why")), table_row(("---",) * 4)]
    lines += [
        table_row([plain(x) for x in (one.verdict, one.cell.name, format_size(one.cell.size),
                                      why(one))])
        for one in found
    ]  # fmt: skip
    return "\n".join((*lines, ""))

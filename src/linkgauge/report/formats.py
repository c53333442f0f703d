"""Defines output formats and documents. Renderers are imported only when used."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

from linkgauge.hooks import CORE, Hook, Unfit, brief, expect
from linkgauge.model.errors import InputError
from linkgauge.registry import listed, loaded

if TYPE_CHECKING:
    from .blocks import Block

TERMINAL = "terminal"
_REPORT = "linkgauge.report"


class Document(NamedTuple):
    """A kind of output. `blocks` (`MODULE:FUNCTION`) makes blocks for people. `texts` names the
    function for each format for programs; the function for Markdown may return blocks. A document
    that is stored as a file has a `title` for its page, and `kept`, its type (`MODULE:TYPE`)."""

    name: str
    blocks: str = ""
    texts: Mapping[str, str] = {}
    title: str = ""
    kept: str = ""

    def has(self, form: Format) -> bool:
        if form.name == TERMINAL or form.of_blocks:
            return bool(self.blocks)
        return form.name in self.texts

    def shown(self, value: object) -> Iterable[Any]:
        blocks: Iterable[Any] = loaded(self.blocks)(value)
        return blocks


class Format(NamedTuple):
    """An output format. `of_blocks` (`MODULE:FUNCTION`) writes blocks as text or bytes."""

    name: str
    help: str = ""
    of_blocks: str = ""
    hook: Hook = CORE

    @property
    def flag(self) -> str:
        return f"--{self.name}"

    @property
    def is_document(self) -> bool:
        return self.name != TERMINAL

    def render(self, document: Document, value: object) -> str | bytes | Iterable[Any]:
        """Returns a text, bytes for a file, or lines for a console. May raise InputError."""
        if not document.has(self):
            raise InputError(f"{self.flag} does not render {document.name}")
        if self.of_blocks:
            blocks = list(document.shown(value))
            with self.hook.asked():
                made: str | bytes = loaded(self.of_blocks)(blocks)
                expect(made, str | bytes)
            return made
        if self.is_document:
            rendered: str | bytes | Iterable[Block] = loaded(document.texts[self.name])(value)
            if isinstance(rendered, str | bytes):
                return rendered
            from .render.markdown import as_markdown

            return as_markdown(f"linkgauge: {document.name}", rendered)
        from .render.terminal import shown

        return shown(document.shown(value))

    def document(self, document: Document, value: object) -> bytes:
        rendered = self.render(document, value)
        if isinstance(rendered, bytes):
            return rendered
        return (rendered if isinstance(rendered, str) else "\n".join(map(str, rendered))).encode()

    def write(self, document: Document, value: object) -> None:
        """Writes to stdout. Raises InputError if the format is not for `document`, or not text."""
        rendered = self.render(document, value)
        if isinstance(rendered, str):
            sys.stdout.write(rendered)
            return
        if isinstance(rendered, bytes):
            raise InputError(f"{self.flag} is not text: give a file with -o")
        from .console import make_console

        console = make_console()
        for line in rendered:
            console.print(line)


@cache
def formats() -> dict[str, Format]:
    """Returns the formats by name, including formats of optional features (rooms)."""
    own = (
        Format("json", "Write the result as JSON to stdout, and all else to stderr."),
        Format("csv", "Write CSV to stdout, and all else to stderr."),
        Format("markdown", "A table in Markdown."),
        Format("junit", "JUnit XML: a test case for each cell."),
        Format("sarif", "SARIF 2.1.0: the findings, for code scanning and editors."),
        Format("hwloc", "hwloc's topology XML, with the measured figures of host memory."),
        Format("parquet", "A Parquet file, which needs -o."),
        Format("yaml", "Write hardware.yml to stdout."),
    )
    taken = {TERMINAL, *(form.name for form in own)}
    added = listed("formats", _of_plugin, taken)
    return {form.name: form for form in (*own, *added, Format(TERMINAL))}


def _of_plugin(form: Any, hook: Hook) -> Format:
    made: Format = expect(form, Format)
    for value in form[:3]:
        expect(value, str)
    if not form.name.isidentifier():
        raise Unfit(f"{brief(form.name)} is no name of an option")
    return made._replace(hook=Hook(f"the format {form.name!r}", hook.origin))


JSON = f"{_REPORT}.files:json_document"

RUN = Document(
    "a run",
    f"{_REPORT}.live:whole_run",
    {"json": JSON, "csv": f"{_REPORT}.tables:CELLS.csv", "sarif": f"{_REPORT}.run_texts:run_sarif"},
)
_GLANCE = f"{_REPORT}.sections.glance"
GLANCE = Document("a look", f"{_GLANCE}:glance_blocks", {"json": f"{_GLANCE}:glance_document"})
PLAN = Document("a plan", f"{_REPORT}.sections.plan:plan_blocks", {"json": JSON})
SUMMARY = Document(
    "cells",
    texts={
        **{form: f"{_REPORT}.tables:CELLS.{form}" for form in ("json", "csv", "parquet")},
        "markdown": f"{_REPORT}.run_texts:run_markdown",
        "junit": f"{_REPORT}.run_texts:summary_junit",
        "sarif": f"{_REPORT}.run_texts:run_sarif",
        "hwloc": f"{_REPORT}.hwloc:memattrs_xml",
    },
)
SAMPLES = Document(
    "samples",
    texts={
        "json": f"{_REPORT}.tables:SAMPLES.json",
        "csv": f"{_REPORT}.files:samples_csv",
        "parquet": f"{_REPORT}.tables:SAMPLES.parquet",
    },
)
_AS_YAML = {"json": JSON, "yaml": "linkgauge.machine.hardware:hardware_yaml"}
MACHINE = Document("a machine", f"{_REPORT}.sections.machine:machine_blocks", _AS_YAML)
MACHINE_IN_DETAIL = MACHINE._replace(blocks=f"{_REPORT}.sections.machine:detailed_machine_blocks")
MEASURED = Document("a measured machine", f"{_REPORT}.sections.topology:run_blocks")
MEASURED_IN_DETAIL = MEASURED._replace(blocks=f"{_REPORT}.sections.topology:detailed_run_blocks")
FINDINGS = Document(
    "findings",
    f"{_REPORT}.sections.findings:diagnosis_blocks",
    {
        "json": f"{_REPORT}.sections.findings:diagnosis_document",
        "sarif": f"{_REPORT}.run_texts:diagnosis_sarif",
    },
)
_CATALOG = f"{_REPORT}.sections.catalog"
BENCHMARKS = Document(
    "benchmarks", f"{_CATALOG}:benchmark_blocks", {"json": f"{_CATALOG}:benchmarks_document"}
)
NAMES_OF_BENCHMARKS = BENCHMARKS._replace(blocks=f"{_CATALOG}:overview_blocks")
CHECKS = Document("checks", f"{_CATALOG}:check_blocks", {"json": JSON})
FAULTS = Document("faults", f"{_REPORT}.sections.catalog:fault_blocks")
COMPARISONS = Document(
    "configurations",
    f"{_REPORT}.sections.configurations:blocks",
    {
        "json": f"{_REPORT}.sections.configurations:configurations_json",
        "csv": f"{_REPORT}.sections.configurations:configurations_csv",
    },
)
_FLEET = f"{_REPORT}.sections.fleet"
FLEET = Document(
    "nodes",
    f"{_FLEET}:fleet_blocks",
    {"json": f"{_FLEET}:fleet_json", "csv": f"{_FLEET}:fleet_csv"},
    "Nodes",
)

"""Findings as SARIF, which code scanning, merge requests and editors read (OASIS: Static Analysis
Results Interchange Format, version 2.1.0)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from linkgauge import __version__
from linkgauge.judge.findings import Finding, Severity
from linkgauge.model.cell_id import spoken
from linkgauge.model.hardware.part import Part

from .csv_text import SIMULATED
from .files import json_document
from .forms import cells_of
from .results import named, size_of
from .rows import OneRun
from .sections.findings import Diagnosis

SCHEMA = (
    "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
)
_LEVELS: Mapping[Severity, str] = {"fail": "error", "warn": "warning", "note": "note"}
"""The levels of failures; what could not be read (`unknown`) is open, which has no level."""


def diagnosis_sarif(diagnosis: Diagnosis) -> str:
    """A doctor's findings as SARIF."""
    outcome = diagnosis.outcome
    own = {"simulated": diagnosis.simulated, "verdict": outcome.word, "exit_code": outcome.code}
    return _log(diagnosis.findings, own)


def run_sarif(one: OneRun) -> str:
    """The findings about what a judged run measured as SARIF, with the verdict on each figure."""
    run, outcome = one.run, one.outcome
    figures = [
        {"cell": spoken(result, cell), "bytes": size_of(result, cell), "status": cell.status,
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
    mark = f" {SIMULATED}" if properties.get("simulated") else ""
    results = [_result(finding, rules.index(finding.check), mark) for finding in findings]
    own = {"tool": {"driver": driver}, "results": results, "properties": properties}
    if run is not None:
        own["automationDetails"] = {"id": run}
    return json_document({"$schema": SCHEMA, "version": "2.1.0", "runs": [own]})


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

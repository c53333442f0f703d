"""Finds transfers that are sometimes fast and sometimes slow, at random."""

from __future__ import annotations

from collections.abc import Iterator

from linkgauge.judge.blame.cases import Case, cases_of
from linkgauge.judge.findings import Evidence, Finding
from linkgauge.model.units import unit_of


def check_modes(evidence: Evidence) -> Iterator[Finding]:
    why = "samples fall into two groups: their average is a value that never occurs"
    for case in cases_of(evidence):
        if case.cell.modes:
            remedy = (f"linkgauge run {case.result.benchmark} --samples 60",)
            name = case.name
            yield Finding("modes", "note", name, _found(case), why, remedy, (name,))


def _found(case: Case) -> str:
    larger, smaller = case.cell.modes
    unit = unit_of(case.result.unit)
    values = [f"{mode.median / unit.scale:.4g}" for mode in (larger, smaller)]
    share = round(100 * larger.gates / (larger.gates + smaller.gates))
    return f"either {values[0]} or {values[1]} {unit.shown}, {share} : {100 - share}"

"""The doctor: a list of checks, each a small function of the evidence.

A new check is one function in a file of this package (or in the reading of results) and its place
in that file's CHECKS. docs/doctor.md has a row for each.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from linkgauge.judge import shape, slow_parts, steadiness
from linkgauge.judge.findings import Evidence, Finding, Severity, evidence_of
from linkgauge.model.result import Run

from . import accelerator_state, cells, fabric, host_setup, links, two_modes

Check = Callable[[Evidence], Iterator[Finding]]

GRAVE: tuple[Check, ...] = (
    *cells.CHECKS,
    *links.CHECKS,
    *fabric.CHECKS,
    *slow_parts.CHECKS,
    *accelerator_state.CHECKS,
    *host_setup.CHECKS,
)
"""Checks that may fail; what the others find is worth knowing at most."""
CHECKS: tuple[Check, ...] = (*GRAVE, *steadiness.CHECKS, *shape.CHECKS, *two_modes.CHECKS)
_ORDER: tuple[Severity, ...] = ("fail", "warn", "note", "unknown")


def diagnose(evidence: Evidence, checks: Sequence[Check] = CHECKS) -> tuple[Finding, ...]:
    """What the checks find: failures first, each kind in the order of the checks, which goes from
    what costs cells to what is good to know."""
    found = [finding for check in checks for finding in check(evidence)]
    return tuple(sorted(found, key=lambda finding: _ORDER.index(finding.severity)))


def failed(findings: tuple[Finding, ...]) -> bool:
    return any(finding.severity == "fail" for finding in findings)


def concerns(run: Run) -> tuple[Finding, ...]:
    """What there is to say after a judged run: failures; and warnings where a cell is low or was
    not measured as it should."""
    cells = [cell for result in run.results for cell in result.cells]
    struck = any(c.verdict == "low" or c.status in ("fail", "error", "timeout") for c in cells)
    told, checks = (("fail", "warn"), CHECKS) if struck else (("fail",), GRAVE)
    return tuple(f for f in diagnose(evidence_of(run), checks) if f.severity in told)

"""The doctor: a list of checks, each a small function of the evidence.

To add a check, write one function in a file of this package (or in one that reads results) and list
it in that file's CHECKS. docs/doctor.md has a row for each check.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from linkgauge.judge import shape, slow_parts, steadiness
from linkgauge.judge.concern import concerns_measured
from linkgauge.judge.findings import Evidence, Finding, Severity, evidence_of
from linkgauge.model.result import Run

from . import accelerator_state, cells, fabric, host_setup, links, two_modes

Check = Callable[[Evidence], Iterator[Finding]]

CHECKS: tuple[Check, ...] = (
    *cells.CHECKS,
    *links.CHECKS,
    *fabric.CHECKS,
    *slow_parts.CHECKS,
    *accelerator_state.CHECKS,
    *host_setup.CHECKS,
    *steadiness.CHECKS,
    *shape.CHECKS,
    *two_modes.CHECKS,
)
_ORDER: tuple[Severity, ...] = ("fail", "warn", "note", "unknown")


def diagnose(evidence: Evidence, checks: Sequence[Check] = CHECKS) -> tuple[Finding, ...]:
    """The findings of all checks, failures first; within a severity in the order of the checks,
    from what costs cells to what is good to know."""
    found = [finding for check in checks for finding in check(evidence)]
    return tuple(sorted(found, key=lambda finding: _ORDER.index(finding.severity)))


def failed(findings: tuple[Finding, ...]) -> bool:
    return any(finding.severity == "fail" for finding in findings)


def concerns(run: Run) -> tuple[Finding, ...]:
    """The findings to report after a judged run: the failures and warnings about what it measured,
    and every warning if a cell is low or was not measured properly."""
    evidence = evidence_of(run)
    cells = evidence.cells()
    struck = any(c.verdict == "low" or c.status in ("fail", "error", "timeout") for c in cells)
    is_about = concerns_measured(evidence)
    return tuple(
        finding
        for finding in diagnose(evidence)
        if finding.severity in ("fail", "warn")
        and (is_about(finding) or (struck and finding.severity == "warn"))
    )

"""What a judged run comes to: one verdict, whichever command reports it."""

from __future__ import annotations

import msgspec

from linkgauge.model.result import Run, exit_code

from .doctor import concerns, diagnose, failed
from .findings import Finding, evidence_of


class Outcome(msgspec.Struct, frozen=True):
    """The exit code, the findings to report, and all that were `found`; with `verdict` false, the
    exit code of the figures alone."""

    code: int
    findings: tuple[Finding, ...] = ()
    verdict: bool = True
    found: tuple[Finding, ...] = ()


def outcome_of(run: Run, *, verdict: bool = True) -> Outcome:
    """Exit code 1 also of a run that passed, if a cell is low or a finding about what was measured
    is a failure; without `verdict`, or of a run under a profiler, or that a rank's loss ended,
    or whose ranks wait for each other's CPUs, neither matters."""
    code = exit_code(run)
    if not verdict or run.is_profiled or run.lost is not None or run.machine.crowd:
        return Outcome(code, verdict=False)
    evidence = evidence_of(run)
    found = diagnose(evidence)
    findings = concerns(evidence, found)
    low = any(cell.verdict == "low" for result in run.results for cell in result.cells)
    return Outcome(code or int(low or failed(findings)), findings, found=found)

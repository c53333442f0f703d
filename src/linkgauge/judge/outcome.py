"""What a judged run comes to: one verdict, whichever command tells it."""

from __future__ import annotations

import msgspec

from linkgauge.model.result import Run, exit_code

from .doctor import concerns, failed
from .findings import Finding


class Outcome(msgspec.Struct, frozen=True):
    """The exit code and the findings to report; with `verdict` false, that of the figures alone."""

    code: int
    findings: tuple[Finding, ...] = ()
    verdict: bool = True


def outcome_of(run: Run, *, verdict: bool = True) -> Outcome:
    """Exit code 1 also of a run that passed, if a cell is low or a finding about what was measured
    is a failure; without `verdict`, neither matters."""
    code = exit_code(run)
    if not verdict:
        return Outcome(code, verdict=False)
    findings = concerns(run)
    low = any(cell.verdict == "low" for result in run.results for cell in result.cells)
    return Outcome(code or int(low or failed(findings)), findings)

"""Which findings are about something that a run has measured."""

from __future__ import annotations

from collections.abc import Callable

from linkgauge.model.wiring import pcie_name

from .cases import cases_of
from .findings import Evidence, Finding


def concerns_measured(evidence: Evidence) -> Callable[[Finding], bool]:
    """Whether a finding is about a memory, a link or a switch that cells of the run touch, or rests
    on such cells: none about the machine as a whole (its governor), or a part left out, is."""
    cases = cases_of(evidence)
    parts = frozenset[str]().union(*(case.touched for case in cases))
    names = {case.name for case in cases}

    def concerns(finding: Finding) -> bool:
        part = finding.subject.partition(" (")[0]  # its address follows a device's name
        called = {part, pcie_name(part), f"link of {part}"}
        return not parts.isdisjoint(called) or not names.isdisjoint(finding.cells)

    return concerns

"""Finds parts whose samples stall or scatter more often than those of their peers."""

from __future__ import annotations

from linkgauge.judge.findings import Evidence

from .scatter import check_scatter
from .stalls import check_stalls

CHECKS = (check_stalls, check_scatter)


def unsteady(evidence: Evidence) -> frozenset[str]:
    """Returns the names of the cells that show a part to be unsteady."""
    found = (finding for check in CHECKS for finding in check(evidence))
    return frozenset(cell for each in found if each.severity == "warn" for cell in each.cells)

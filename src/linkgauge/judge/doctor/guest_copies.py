"""Checks a virtual machine whose copies with its host's memory are all slow alike: the host's
doing, not that of a card."""

from __future__ import annotations

from collections.abc import Iterator

from linkgauge.judge.blame.cases import Case, cases_of
from linkgauge.judge.findings import Evidence, Finding
from linkgauge.judge.remedies import COMPARE_ON_HOST, IOMMU_PT
from linkgauge.model.hardware.part import MACHINE
from linkgauge.model.units import BANDWIDTH

_LEAST, _MOST = 0.3, 0.7
"""The shares of what is expected between which all copies lie that a host's placement slows."""
_FEW = 2


def check_guest_copies(evidence: Evidence) -> Iterator[Finding]:
    """Checks for copies between the host's memory and devices that all reach about half of what
    their links carry. In a guest, the links and their ports look well then."""
    if not evidence.machine.is_virtual:
        return
    cases = [case for case in cases_of(evidence) if _with_host(case)]
    shares = [share for case in cases if (share := _share(case)) is not None]
    if len(shares) < _FEW or len(shares) < len(cases):
        return
    least, most = min(shares), max(shares)
    if not (least >= _LEAST and most <= _MOST):
        return
    found = f"all {len(shares)} kinds of copies with the host's memory reach {least:.0%} to "
    found += f"{most:.0%} of what their links carry"
    why = "all alike, so no card or slot: vCPUs that move among the host's CPUs, memory of another "
    why += "node, or an IOMMU that translates each address slow them so"
    remedy = (
        *COMPARE_ON_HOST,
        "# Pin each vCPU, and bind the memory to the devices' node, as it prints.",
        f"# On the host: {IOMMU_PT.removeprefix('# ')}",
    )
    names = tuple(case.name for case in cases)
    yield Finding("guest-copies", "warn", MACHINE, found, why, remedy, names)


def _with_host(case: Case) -> bool:
    first, *others = case.cell.transfers
    ends = first.memories
    is_copy = first.engine.kind == "ce" and len(ends) == 2 and case.result.unit == BANDWIDTH.symbol
    pinned = all(end.kind != "pageable" for end in ends)
    return is_copy and pinned and not others and sum(end.is_host for end in ends) == 1


def _share(case: Case) -> float | None:
    expected = case.cell.expected
    return case.cell.share(expected.achievable) if expected is not None else None

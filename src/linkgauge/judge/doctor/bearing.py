"""Decides whether setup problems slowed the run. Problems that slowed nothing become notes."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from linkgauge.judge.blame.cases import Case, cases_of
from linkgauge.judge.findings import Evidence, Finding
from linkgauge.judge.peers import behind
from linkgauge.model.hardware.part import Part

_OF_LIMITS = ("capped-clock", "locked-clock", "power-limit")
"""Checks of limits. They cost little speed, so being behind the peers already counts."""
OF_CLOCKS = ("clocks", *_OF_LIMITS)
"""Checks of clocks, which slow down kernels but not copy engines."""
SETUP = (
    *_OF_LIMITS, "iommu", "governor", "transparent-huge-pages", "near-node", "relaxed-ordering",
    "aspm", "bar1", "ecc-off", "compute-mode", "payload", "read-request", "acs",
)  # fmt: skip
"""Checks of settings that may slow transfers, but make none fail."""
_OF_PEERS = ("bar1", "acs")
"""Checks that matter only if devices reach each other's memory over PCIe."""


def weighed(evidence: Evidence, found: Sequence[Finding]) -> list[Finding]:
    """Turns a warning about a setting into a note if the warning explains no other finding, and if
    no cell that depends on this setting is slow or has failed."""
    warned = [one for one in found if one.check in SETUP and one.severity == "warn"]
    cases = cases_of(evidence) if warned else ()
    if not cases:
        return list(found)
    grave = [one for one in found if one.check not in SETUP and one.is_grave]
    affected = {name for one in grave for name in one.cells}
    affected |= {case.name for case in cases if case.cell.verdict in ("low", "perhaps low")
                 or case.cell.status in ("fail", "error", "timeout")}  # fmt: skip
    slower = affected | {one.case.name for one in behind(evidence)}
    causes = {name for one in grave for name in one.explained_by}

    def slows(one: Finding) -> bool:
        suspects = slower if one.check in _OF_LIMITS else affected
        own = {case.name for case in cases if _depends(case, one)}
        return one.name in causes or not suspects.isdisjoint(one.cells or own)

    minor = {id(one) for one in warned if not slows(one)}
    return [replace(one, severity="note") if id(one) in minor else one for one in found]


def _depends(case: Case, one: Finding) -> bool:
    """Whether a cell's figure depends on the part or the setting that a finding reports."""
    if one.check in _OF_PEERS and not _is_between_devices(case):
        return False
    if one.check in OF_CLOCKS and is_by_copy_engine(case):
        return False
    if not isinstance(one.about, Part) or not one.ends or one.check == "acs":
        return True
    return any(not one.ends.isdisjoint(part.ends) for part in case.touched)


def is_by_copy_engine(case: Case) -> bool:
    return any(one.engine.kind == "ce" for one in case.cell.transfers)


def _is_between_devices(case: Case) -> bool:
    return any(part.kind == "PCIe link" for part in case.touched) and any(
        len({end for end in (*one.memories, one.engine.owner) if end and not end.is_host}) > 1
        for one in case.cell.transfers
    )

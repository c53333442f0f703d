"""Virtual machines: what of a libvirt domain did not take effect, and what would suit its devices.

To add a check, write a function `check_…` from a Comparison to findings in a file of this package.
docs/vm.md has a row for each check.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec

from linkgauge.judge.doctor.busy import check_steal
from linkgauge.judge.findings import Check, Evidence, Finding, Severity, checks_in
from linkgauge.rooms.vm.domain import Role

from . import described, guest, host_cpus, host_devices, host_memory
from .comparison import DomainEvidence
from .planner import PLACEMENT, Suited, applied, cost, suited

_ORDER: tuple[Severity, ...] = ("fail", "warn", "note", "unknown")


def _steal(case: DomainEvidence) -> Iterator[Finding]:
    """The symptom of vCPUs that share their CPUs, which only the host shows."""
    yield from check_steal(case.evidence)


CHECKS: dict[Role, tuple[Check[DomainEvidence], ...]] = {
    "guest": (*checks_in(described, guest), _steal),
    "host": checks_in(described, host_cpus, host_devices, host_memory),
}


class DomainFindings(msgspec.Struct, frozen=True):
    """What was found, failures first; and a placement, if one would suit better than the domain's.
    `too_much`: one is wanted, but the host has too few CPUs or too little memory for it. `is_best`:
    the one that fits costs more than the domain's own, or fails a check that the domain passes."""

    findings: tuple[Finding, ...] = ()
    suited: Suited | None = None
    too_much: bool = False
    is_best: bool = False


def judge(case: DomainEvidence, role: Role) -> DomainFindings:
    findings = _sorted(found_in(case, role))
    wrong = {one.check for one in findings if one.severity in ("fail", "warn")}
    if role == "guest" or PLACEMENT.isdisjoint(wrong):
        return DomainFindings(findings)
    placement = suited(case, wrong)
    if placement is None:
        return DomainFindings(findings, too_much=True)
    after = applied(case, placement)
    fails = {one.check for one in found_in(after, role) if one.severity == "fail"}
    if cost(after) > cost(case) or not fails <= wrong:
        return DomainFindings(findings, is_best=True)
    return DomainFindings(findings, placement)


def found_in(case: DomainEvidence, role: Role) -> Iterator[Finding]:
    """What the checks of a role find."""
    return (finding for check in CHECKS[role] for finding in check(case))


def judge_alone(evidence: Evidence) -> DomainFindings:
    """What a guest shows without its domain."""
    return DomainFindings(_sorted(finding for check in guest.ALONE for finding in check(evidence)))


def _sorted(found: Iterable[Finding]) -> tuple[Finding, ...]:
    return tuple(sorted(found, key=lambda one: _ORDER.index(one.severity)))

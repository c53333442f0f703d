"""Checks a virtual machine by functions `check_…`, which take a DomainEvidence (see docs/vm.md)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec

from linkgauge.judge.doctor.busy import check_steal
from linkgauge.judge.findings import SEVERITIES, Check, Evidence, Finding, checks_in
from linkgauge.rooms.vm.domain import Role

from . import alone, described, guest, host_cpus, host_devices, host_memory
from .comparison import DomainEvidence
from .planner import PLACEMENT, Suited, applied, cost, suited


def _steal(case: DomainEvidence) -> Iterator[Finding]:
    yield from check_steal(case.evidence)


CHECKS: dict[Role, tuple[Check[DomainEvidence], ...]] = {
    "guest": (*checks_in(described, guest), _steal),
    "host": checks_in(described, host_cpus, host_devices, host_memory),
    "neither": checks_in(described, alone),
}


class DomainFindings(msgspec.Struct, frozen=True):
    """The findings of a domain, and a placement `suited` that is better. If `too_much`, the host is
    too small for any placement. If `is_best`, no better placement than the domain's was found."""

    findings: tuple[Finding, ...] = ()
    suited: Suited | None = None
    too_much: bool = False
    is_best: bool = False


def judge(case: DomainEvidence, role: Role) -> DomainFindings:
    findings = _sorted(found_in(case, role))
    wrong = {one.check for one in findings if one.is_grave}
    if role != "host" or PLACEMENT.isdisjoint(wrong):
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
    return (finding for check in CHECKS[role] for finding in check(case))


def judge_alone(evidence: Evidence) -> DomainFindings:
    return DomainFindings(_sorted(finding for check in guest.ALONE for finding in check(evidence)))


def _sorted(found: Iterable[Finding]) -> tuple[Finding, ...]:
    return tuple(sorted(found, key=lambda one: SEVERITIES.index(one.severity)))

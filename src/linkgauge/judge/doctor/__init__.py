"""Runs the doctor's checks: functions `check_…` of modules in `FILES`, with rows in `catalogue`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from importlib import import_module
from itertools import chain
from operator import attrgetter
from typing import Any

from msgspec.structs import replace

from linkgauge.hooks import Hook, Unfit, brief
from linkgauge.judge.blame.cases import Case, concerns_measured, timed_cases_of
from linkgauge.judge.findings import SEVERITIES, Check, Evidence, Finding, Severity, checks_in
from linkgauge.model.hardware.part import Part
from linkgauge.model.kernel_log import KernelLog
from linkgauge.registry import listed

from .bearing import OF_CLOCKS, is_by_copy_engine, weighed

_JUDGE = __name__.rpartition(".")[0]
FILES: Mapping[str, str] = {
    f"{__name__}.busy": "host",
    f"{__name__}.cells": "failures",
    f"{__name__}.links": "hardware",
    f"{__name__}.lost_links": "inactive links",
    f"{__name__}.fabric": "fabric",
    f"{__name__}.network": "network counters",
    f"{__name__}.interface_setup": "interfaces",
    f"{__name__}.kernel_log": "kernel log",
    f"{_JUDGE}.blame.slow_parts": "peers",
    f"{_JUDGE}.undetectable": "peers",
    f"{__name__}.accelerator_state": "hardware",
    f"{__name__}.backends": "backends",
    f"{__name__}.host_setup": "host",
    f"{__name__}.placement": "PCI",
    f"{_JUDGE}.blame.unsteady": "peers",
    f"{_JUDGE}.shape": "rows",
    f"{_JUDGE}.curve_shape": "sizes",
    f"{__name__}.reach": "ways",
}
"""The files of checks. Each is loaded if the evidence has what its checks need to find anything."""


def checks_of(evidence: Evidence) -> tuple[Check[Evidence], ...]:
    present = {name for name, there in _facts(evidence) if there}
    return checks_in(*(import_module(name) for name, of in FILES.items() if of in present))


def _facts(evidence: Evidence) -> Iterator[tuple[str, object]]:
    machine, known = evidence.machine, evidence.machine.known
    yield from (
        ("host", True),
        ("hardware", known.pci or known.adapters or machine.accelerators or machine.addresses),
        ("fabric", machine.accelerators or known.adapters),
        ("fabric", any(wire.kind in ("network", "fabric") for wire in machine.wiring.wires)),
        ("interfaces", machine.ranks),
        ("kernel log", evidence.log and evidence.log != KernelLog()),
        ("peers", evidence.is_comparable),
        ("backends", machine.unavailable or machine.accelerators),
        ("PCI", known.pci),
        ("sizes", evidence.results[2:]),
    )
    after = evidence.after.accelerators if evidence.after is not None else ()
    for one in (*known.accelerators, *after):
        yield "inactive links", any(link.active is False for link in one.links)
    for nic in known.interfaces:
        yield from (("fabric", nic.rdma), ("interfaces", nic.setup and nic.speed))
    for result in evidence.results:
        yield "sizes", result.sweep
        for cell in result.cells:
            engines = {one.engine.kind for one in cell.transfers}
            yield from (
                ("failures", cell.kind),
                ("network counters", cell.rises),
                ("ways", cell.modes or cell.transfers[1:] or "sm" in engines),
                ("rows", cell.row != result.cells[0].row),  # a way back, or classes of pairs
                ("fabric", engines - {"cpu"}),
            )


OF_MACHINE = ("busy", "steal")
"""Checks whose warnings come before findings about parts, and explain unsteady cells."""
KNOWN = (
    *OF_MACHINE, "processes", "clocks", "capped-clock", "locked-clock", "silent", "switch",
    "link-speed", "link-width", "fabric-links", "ecc", "link-errors", "fabric-errors", "acs",
    "network", "tcp-limit", "mtu-ends", "interface",
)  # fmt: skip
"""Checks of facts that were read. These findings explain findings that figures suggest."""
NOTED = ("busy", "network", "tcp-limit")
"""Checks whose findings are notes unless they explain another finding."""
CONFIRMED = (
    "lost", "hang", "crash", "wrong-bytes", "silent", "switch", "link-errors", "fabric-errors",
    "ecc", "row-remap",
)  # fmt: skip
"""Checks whose findings the kernel's log confirms if it names the same part."""
UNSTEADY = ("scatter", "stall")
INFERRED = ("slow", "drift", *UNSTEADY)


def diagnose(
    evidence: Evidence, checks: Sequence[Check[Evidence]] | None = None
) -> tuple[Finding, ...]:
    """Runs the checks and returns their findings: first findings that explain others, then
    failures. A failure that was inferred from figures becomes a warning if another failure, or
    another process on the device, explains it, because the reported part may be healthy."""
    if checks is None:
        checks = (*checks_of(evidence), *listed("checks", _of_plugin))
    found = [finding for check in checks for finding in check(evidence)]
    search = _Causes(evidence, found)
    causes = list(map(search.of, found))
    explaining = set(chain.from_iterable(causes))
    said = weighed(evidence, [*map(_referring, _confirming(evidence, found), causes)])
    places = dict[str, int]()
    for place, one in enumerate(search.known):
        if one in explaining:
            places[one.name] = place
        if one.check in OF_MACHINE and one.severity == "warn":
            places[one.name] = -1
    last = len(search.known)
    for at, one in enumerate(said):
        if one.check == "host":  # of several hosts, the other findings are of the odd one
            places[one.name] = -1
        elif one.check == "link-speed":
            places |= dict.fromkeys(one.explained_by, places.get(one.name, last))
        elif one.check in NOTED and one.name in places:
            # That the host was busy, or packets were lost, is a warning if it explains something.
            said[at] = replace(one, severity="warn")
    return tuple(
        sorted(said, key=lambda f: (places.get(f.name, last), SEVERITIES.index(f.severity)))
    )


def _of_plugin(check: Any, hook: Hook) -> Check[Evidence]:
    if not callable(check):
        raise Unfit(f"{brief(check)} is no function")
    return lambda evidence: iter(hook.items(lambda: check(evidence), Finding))


class _Causes:
    """Finds the causes of findings inferred from figures, among findings of facts (`known`)."""

    def __init__(self, evidence: Evidence, found: Sequence[Finding]) -> None:
        self.known: list[Finding] = []
        self._asking: dict[Part | str, Finding] = {}
        cells = set[str]()
        for one in found:
            if one.check in INFERRED:
                cells.update(one.cells)
            elif one.check in KNOWN and (one.is_grave or one.check in NOTED):
                self.known.append(one)
            elif (one.check, one.severity) == ("target-speed", "fail"):
                self._asking[one.about] = one
        self.known.sort(key=lambda one: KNOWN.index(one.check))
        self._joints: dict[Any, set[Part]] = evidence.machine.wiring.joints()
        self._cases: dict[str, Case] = {}
        for case in timed_cases_of(evidence) if cells else ():
            if case.name in cells:
                self._cases[case.name] = case
        self._turned = _turned(evidence, self._cases)

    def of(self, finding: Finding) -> tuple[Finding, ...]:
        if finding.check == "link-speed" and finding.is_grave and finding.about in self._asking:
            return (self._asking[finding.about],)
        if finding.check not in INFERRED:
            return ()
        cases = [self._cases[cell] for cell in finding.cells if cell in self._cases]
        parts = [case.touched for case in cases]
        ports = [self._turned.get(cell, frozenset()) for cell in finding.cells]
        turning = frozenset[str]().union(*ports) if all(ports) else frozenset[str]()
        # A pair is no part: what is known of a part that all its cells touch explains it.
        is_pair = bool(parts) and not isinstance(finding.about, Part)
        shared = frozenset.intersection(*parts) if is_pair else frozenset[Part]()
        used = [*self._meanwhile(finding, parts)]
        is_copied = any(map(is_by_copy_engine, cases))
        return tuple(
            each
            for each in self.known
            if not (is_copied and each.check in OF_CLOCKS)
            and (
                _is_at(each, finding)
                or (each.check == "switch" and finding.about in self._joints.get(each.about, ()))
                or (each.check == "acs" and not turning.isdisjoint(each.ends))
                or each.about in shared
                or each in used
            )
        )

    def _meanwhile(self, finding: Finding, parts: Sequence[frozenset[Part]]) -> Iterator[Finding]:
        in_use = [each for each in self.known if each.check == "processes"]
        is_unsteady = finding.check in UNSTEADY
        if parts and in_use:
            devices = {each.about for each in in_use}
            is_each_used = not any(devices.isdisjoint(of) for of in parts)
            enough = any if is_unsteady and is_each_used else all
            yield from (each for each in in_use if enough(each.about in of for of in parts))
        for each in self.known if is_unsteady else ():
            is_warned = each.severity == "warn" or each.check == "busy"
            if is_warned and each.check in OF_MACHINE and {*each.cells} & {*finding.cells}:
                yield each


def _is_at(cause: Finding, finding: Finding) -> bool:
    # Capped clocks only explain findings on their cells.
    if cause.check == "capped-clock" and cause.cells and not {*cause.cells} & {*finding.cells}:
        return False
    is_link = isinstance(cause.about, Part) and cause.about.kind == "link"
    return not finding.ends.isdisjoint(cause.ends) or (is_link and cause.about == finding.about)


def _turned(evidence: Evidence, cases: Mapping[str, Case]) -> dict[str, frozenset[str]]:
    if not evidence.machine.known.pci:
        return {}
    from .links import redirecting

    ports = redirecting(evidence)
    if not ports:
        return {}

    @cache
    def turning(parts: frozenset[Part]) -> frozenset[str]:
        devices = {end for part in parts if part.kind == "device" for end in part.ends}
        return frozenset(
            port for port, pairs in ports.items() if any(devices.issuperset(one) for one in pairs)
        )

    return {name: turning(case.touched) for name, case in cases.items()}


def _referring(finding: Finding, causes: Sequence[Finding]) -> Finding:
    if not causes:
        return finding
    names = tuple(cause.name for cause in causes)
    if finding.check not in INFERRED:
        return replace(finding, explained_by=names)
    used = finding.severity == "fail" and any(cause.check == "processes" for cause in causes)
    severity: Severity = "warn" if used or failed(causes) else finding.severity
    why = f"explained by the finding {' and '.join(map(repr, names[:2]))}, above"
    return replace(finding, severity=severity, why=why, explained_by=names)


def _confirming(evidence: Evidence, found: Sequence[Finding]) -> Iterator[Finding]:
    for finding in found:
        of: list[str] = []
        if finding.check == "kernel-log" and finding.is_grave:
            around = _around(evidence, finding)
            of = [f.name for f in found if f.check in CONFIRMED and not around.isdisjoint(f.ends)]
        why = f"{finding.why}; it confirms {' and '.join(of[:2])}"
        yield replace(finding, why=why) if of else finding


def _around(evidence: Evidence, finding: Finding) -> frozenset[str]:
    places = finding.ends
    for name, address in evidence.machine.addresses.items():
        if not places.isdisjoint((name, address)):
            above = (function.address for function in evidence.machine.pci_line(address))
            places |= {name, address, *above}
    return places


def failed(findings: Sequence[Finding]) -> bool:
    return "fail" in map(attrgetter("severity"), findings)


def concerns(evidence: Evidence, found: Sequence[Finding]) -> tuple[Finding, ...]:
    """Returns failures and warnings on measured parts. If a cell failed or is low, adds the other
    warnings."""
    cells = evidence.cells()
    has_failed = any(c.verdict == "low" or c.status in ("fail", "error", "timeout") for c in cells)
    is_measured = concerns_measured(evidence)
    return tuple(
        one for one in found
        if one.is_grave and (is_measured(one) or (has_failed and one.severity == "warn"))
    )  # fmt: skip

"""Runs the doctor's checks: functions `check_…` of modules in `FILES`, with rows in `catalogue`."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Mapping, Sequence, Set
from functools import cache
from importlib import import_module
from operator import attrgetter
from typing import Any

from msgspec.structs import replace

from linkgauge.hooks import Hook, Unfit, brief
from linkgauge.judge.blame.cases import concerns_measured, timed_cases_of
from linkgauge.judge.findings import SEVERITIES, Check, Evidence, Finding, Severity, checks_in
from linkgauge.model.hardware.part import Part
from linkgauge.model.kernel_log import KernelLog
from linkgauge.registry import listed

from .bearing import OF_CLOCKS, is_by_copy_engine, weighed


def _has_hardware(evidence: Evidence) -> bool:
    machine = evidence.machine
    known = machine.known
    return bool(known.pci or known.adapters or machine.accelerators or machine.addresses)


def _has_fabric(evidence: Evidence) -> bool:
    machine = evidence.machine
    return bool(
        machine.accelerators
        or _uses_devices(evidence)
        or machine.known.adapters
        or any(one.rdma for one in machine.known.interfaces)
        or any(one.kind in ("network", "fabric") for one in machine.wiring.wires)
    )


def _uses_devices(evidence: Evidence) -> bool:
    return any(one.engine.kind != "cpu" for cell in evidence.cells() for one in cell.transfers)


def _is_set_up(evidence: Evidence) -> bool:
    return any(one.setup and one.speed for one in evidence.machine.known.interfaces)


_compared = attrgetter("is_comparable")
_JUDGE = __name__.rpartition(".")[0]
FILES: Mapping[str, Callable[[Evidence], object]] = {
    f"{__name__}.busy": lambda _: True,
    f"{__name__}.cells": lambda known: any(cell.kind for cell in known.cells()),
    f"{__name__}.links": _has_hardware,
    f"{__name__}.fabric": _has_fabric,
    f"{__name__}.network": lambda known: any(cell.rises for cell in known.cells()),
    f"{__name__}.interface_setup": lambda known: known.machine.ranks or _is_set_up(known),
    f"{__name__}.kernel_log": lambda known: known.log and known.log != KernelLog(),
    f"{_JUDGE}.blame.slow_parts": _compared,
    f"{_JUDGE}.undetectable": _compared,
    f"{__name__}.accelerator_state": _has_hardware,
    f"{__name__}.backends": lambda known: known.machine.unavailable or known.machine.accelerators,
    f"{__name__}.host_setup": lambda _: True,
    f"{__name__}.placement": lambda known: known.machine.known.pci,
    f"{_JUDGE}.blame.unsteady": _compared,
    f"{_JUDGE}.shape": _compared,
    f"{_JUDGE}.curve_shape": lambda known: (
        known.results[2:] or any(one.sweep for one in known.results)
    ),
    f"{__name__}.reach": lambda known: _uses_devices(known) or any(c.modes for c in known.cells()),
}
"""The files of checks, each with what the evidence must have for them to find anything. Others are
not loaded."""
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


def checks_of(evidence: Evidence) -> tuple[Check[Evidence], ...]:
    return checks_in(*(import_module(name) for name, has in FILES.items() if has(evidence)))


def diagnose(
    evidence: Evidence, checks: Sequence[Check[Evidence]] | None = None
) -> tuple[Finding, ...]:
    """Runs the checks and returns their findings: first findings that explain others, then
    failures. A failure that was inferred from figures becomes a warning if another failure or a
    process explains it, because the part itself may be healthy."""
    if checks is None:
        checks = (*checks_of(evidence), *listed("checks", _of_plugin))
    found = [finding for check in checks for finding in check(evidence)]
    read = (f for f in found if f.check in KNOWN and (f.is_grave or f.check in NOTED))
    known = sorted(read, key=lambda f: KNOWN.index(f.check))
    joints = evidence.machine.wiring.joints().items()
    meeting = {(joint, link) for joint, links in joints for link in links}
    cells = {cell for finding in found if finding.check in INFERRED for cell in finding.cells}
    timed = {case.name: case for case in (timed_cases_of(evidence) if cells else ())}
    named = {name: timed[name] for name in timed.keys() & cells}
    touched = {name: case.touched for name, case in named.items()}
    copied = {name for name, case in named.items() if is_by_copy_engine(case)}
    turned = _turned(evidence, touched)
    asking = [f for f in found if (f.check, f.severity) == ("target-speed", "fail")]
    causes = [
        _throttled(finding, asking) or _causes(finding, known, meeting, touched, turned, copied)
        for finding in found
    ]
    first = {cause: place for place, cause in enumerate(known) if any(
        cause in of for of in causes
    )}  # fmt: skip
    # That the host was busy, or packets were lost, is no warning unless it explains something.
    warned = {f.name for f in first if f.check in NOTED}
    said = [
        replace(each, severity="warn") if each.name in warned else each
        for each in weighed(evidence, [*map(_referring, _confirming(evidence, found), causes)])
    ]
    places = {f.name: place for f, place in first.items()}
    places |= {f.name: -1 for f in known if f.check in OF_MACHINE and f.severity == "warn"}
    # Of several hosts, the other findings are of the odd one.
    places |= {f.name: -1 for f in found if f.check == "host"}
    for finding in said:
        for cause in finding.explained_by if finding.check == "link-speed" else ():
            places[cause] = places.get(finding.name, len(known))
    return tuple(
        sorted(said, key=lambda f: (places.get(f.name, len(known)), SEVERITIES.index(f.severity)))
    )


def _of_plugin(check: Any, hook: Hook) -> Check[Evidence]:
    if not callable(check):
        raise Unfit(f"{brief(check)} is no function")
    return lambda evidence: iter(hook.items(lambda: check(evidence), Finding))


def _causes(
    finding: Finding,
    known: Sequence[Finding],
    meeting: Container[tuple[Part, Part]],
    touched: Mapping[str, frozenset[Part]],
    turned: Mapping[str, frozenset[str]],
    copied: Set[str],
) -> tuple[Finding, ...]:
    if finding.check not in INFERRED:
        return ()
    ports = [turned.get(cell, frozenset()) for cell in finding.cells]
    turning = frozenset[str]().union(*ports) if all(ports) else frozenset[str]()
    used = _meanwhile(finding, known, touched)
    # A pair of devices is no part: what is known of a part that all its cells touch explains it.
    cells = [touched[cell] for cell in finding.cells if cell in touched]
    is_pair = bool(cells) and not isinstance(finding.about, Part)
    shared = frozenset.intersection(*cells) if is_pair else frozenset[Part]()
    if not copied.isdisjoint(finding.cells):
        known = [each for each in known if each.check not in OF_CLOCKS]
    return tuple(
        each
        for each in known
        if (_is_at(each, finding) and _is_meanwhile(each, finding))
        or (each.check == "switch" and (each.about, finding.about) in meeting)
        or (each.check == "acs" and not turning.isdisjoint(each.ends))
        or each.about in shared
        or each in used
    )


def _is_at(cause: Finding, finding: Finding) -> bool:
    is_link = isinstance(cause.about, Part) and cause.about.kind == "link"
    return not finding.ends.isdisjoint(cause.ends) or (is_link and cause.about == finding.about)


def _is_meanwhile(cause: Finding, finding: Finding) -> bool:
    """Whether a cause may explain a finding. Capped clocks only explain findings on their cells."""
    seen = cause.cells if cause.check == "capped-clock" else ()
    return not seen or not {*seen}.isdisjoint(finding.cells)


def _turned(
    evidence: Evidence, touched: Mapping[str, frozenset[Part]]
) -> dict[str, frozenset[str]]:
    if not evidence.machine.known.pci:
        return {}
    from .links import redirecting

    ports = redirecting(evidence)

    @cache
    def turning(parts: frozenset[Part]) -> frozenset[str]:
        devices = {end for part in parts if part.kind == "device" for end in part.ends}
        return frozenset(
            port for port, pairs in ports.items() if any(devices.issuperset(one) for one in pairs)
        )

    return {name: turning(parts) for name, parts in touched.items()} if ports else {}


def _meanwhile(
    finding: Finding, known: Sequence[Finding], touched: Mapping[str, frozenset[Part]]
) -> list[Finding]:
    parts = [touched[cell] for cell in finding.cells if cell in touched]
    in_use = [each for each in known if each.check == "processes"]
    devices, is_unsteady = {each.about for each in in_use}, finding.check in UNSTEADY
    is_each_used = not any(devices.isdisjoint(of) for of in parts)
    enough = any if is_unsteady and is_each_used else all
    return [each for each in in_use if parts and enough(each.about in of for of in parts)] + [
        each for each in known
        if (each.severity == "warn" or each.check == "busy") and each.check in OF_MACHINE
        and is_unsteady and {*each.cells} & {*finding.cells}
    ]  # fmt: skip


def _throttled(finding: Finding, asking: Sequence[Finding]) -> tuple[Finding, ...]:
    is_slow = finding.check == "link-speed" and finding.is_grave
    return tuple(each for each in asking if is_slow and each.about == finding.about)


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
    others = [finding for finding in found if finding.check in CONFIRMED]
    for finding in found:
        is_logged = finding.check == "kernel-log" and finding.is_grave
        around = _around(evidence, finding) if is_logged else frozenset[str]()
        of = [other.name for other in others if not around.isdisjoint(other.ends)]
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
    return any(finding.severity == "fail" for finding in findings)


def concerns(evidence: Evidence, found: Sequence[Finding]) -> tuple[Finding, ...]:
    """Returns failures and warnings on measured parts; if a cell failed or is low, all warnings."""
    cells = evidence.cells()
    has_failed = any(c.verdict == "low" or c.status in ("fail", "error", "timeout") for c in cells)
    is_measured = concerns_measured(evidence)
    return tuple(
        one for one in found
        if one.is_grave and (is_measured(one) or (has_failed and one.severity == "warn"))
    )  # fmt: skip

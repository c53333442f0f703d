"""Checks the kernel's messages during a run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from linkgauge.judge.blame.xids import CATALOG, meaning_of_xid, severity_of
from linkgauge.judge.findings import SEVERITIES, Evidence, Finding
from linkgauge.judge.pcie_chains import hops
from linkgauge.judge.remedies import (
    FABRIC_MANAGER,
    IOMMU_PT,
    LESS_MEMORY,
    RESEAT,
    RESET,
    kernel_log,
    link_state,
)
from linkgauge.model.grouped import grouped
from linkgauge.model.hardware.part import MACHINE, Part
from linkgauge.model.kernel_log import LogKind, LogLine

_OF_LINKS = ("aer", "hotplug")
_GRADED = ("aer", "sxid", "hardware")
_NAMED = 4


class _About(msgspec.Struct, frozen=True):
    name: str
    why: str
    remedy: tuple[str, ...]


_ABOUT: dict[LogKind, _About] = {
    "xid": _About(
        "Xid",
        "the driver reported an error of the GPU, or of a program on it",
        (f"# Look it up in {CATALOG}.",),
    ),
    "sxid": _About(
        "an error of an NVSwitch (SXid)",
        "copies between GPUs go through the switch",
        (FABRIC_MANAGER, "nvidia-smi nvlink -e"),
    ),
    "aer": _About(
        "errors of PCI Express (AER)",
        "broken packets are sent again or lost: the link or its contacts are bad",
        (RESEAT, link_state("ADDRESS", "Sta:")),
    ),
    "hotplug": _About(
        "a change of a slot (pciehp)",
        "the link went down or the card lost its power",
        ("# Check the card's seat, its cables and its power supply.",),
    ),
    "hardware": _About(
        "errors of memory or processors",
        "reads from there may be wrong, or slow while they are corrected",
        ("ras-mc-ctl --errors  # from rasdaemon", "# Replace a DIMM whose errors recur."),
    ),
    "iommu": _About(
        "faults of the IOMMU",
        "a device used an address that it may not access, so its copy did not arrive",
        ("# Update the driver.", IOMMU_PT),
    ),
    "out-of-memory": _About(
        "a process killed to free memory",
        "the machine or a container ran out of memory during the run",
        LESS_MEMORY,
    ),
    "driver": _About(
        "messages of the driver",
        "drivers report what disturbs or slows their devices",
        ("sudo dmesg -T  # look at the lines around them",),
    ),
}


def check_kernel_log(evidence: Evidence) -> Iterator[Finding]:
    """Reports the kernel's messages: one finding for each device, as severe as its worst line."""
    log = evidence.log
    if log is None:
        return
    look = (kernel_log("xid", "aer", "edac", "mce", "oom"),)
    for gap in log.unknown:
        found = f"cannot read what the kernel logged during the run: {gap.why}"
        yield Finding("kernel-log", "unknown", MACHINE, found, remedy=look)
    named = _named(evidence)
    for part, lines in grouped((_part(line, named), line) for line in log.lines).items():
        yield _finding(part, lines)
    texts = [f"{log.more} more lines of the same kinds"] if log.more else []
    texts += ["lines that the kernel overwrote before they were read"] if log.lost else []
    if texts:
        found = f"the kernel logged more lines than are kept: {', '.join(texts)}"
        why = "a flood of messages is itself a sign of trouble"
        yield Finding("kernel-log", "note", MACHINE, found, why, look)


_Named = dict[tuple[bool, str], Part]
"""Parts by whether a message is about a link, and by the message's address."""


def _named(evidence: Evidence) -> _Named:
    """Maps `_Named` keys to parts. A message about a port's link concerns the device below."""
    of_devices = {at: Part.device(name, at) for name, at in evidence.machine.addresses.items()}
    named = {(is_link, at): part for at, part in of_devices.items() for is_link in (True, False)}
    for hop in hops(evidence):
        if hop.port is not None:
            named.setdefault((True, hop.port.address), hop.part)
        for is_link in (True, False):
            named.setdefault((is_link, hop.function.address), hop.part)
    return named


def _part(line: LogLine, named: _Named) -> Part:
    if line.pci is None:
        return MACHINE
    return named.get((line.kind in _OF_LINKS, line.pci)) or Part.function(line.pci)


def _finding(part: Part, lines: Sequence[LogLine]) -> Finding:
    # The gravest come first, since the first are shown.
    lines = sorted(lines, key=lambda line: (SEVERITIES.index(severity_of(line)), line.seconds))
    first, severity = lines[0], severity_of(lines[0])
    called = list(dict.fromkeys(_called(line) for line in lines if severity_of(line) == severity))
    more = f" and {len(called) - _NAMED} more" if len(called) > _NAMED else ""
    found = f"the kernel logged {', '.join(called[:_NAMED])}{more}"
    about = _ABOUT[first.kind]
    remedy = tuple(text.replace("ADDRESS", first.pci or "ADDRESS") for text in about.remedy)
    if severity == "fail" and first.kind in ("xid", "sxid"):
        remedy += (RESET,)
    # A log that somebody pasted may have no clock.
    texts = tuple(f"{o.seconds:.3f} s: {o.text}" if o.seconds else o.text for o in lines)
    return Finding("kernel-log", severity, part, found, about.why, remedy, lines=texts)


def _called(line: LogLine) -> str:
    if line.kind == "xid":
        return meaning_of_xid(line.code)
    if line.kind == "driver" and severity_of(line) == "fail":
        return "that a GPU has fallen off the bus"
    name = _ABOUT[line.kind].name
    return f"{name}, {line.gravity}" if line.gravity and line.kind in _GRADED else name

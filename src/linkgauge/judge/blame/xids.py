"""Judges lines of the kernel's log, such as Xids, the errors of NVIDIA's driver. By NVIDIA's
`CATALOG` (Ampere and later), an Xid is a failure if the advice is to reset the GPU, restart the
machine or check cables, or if the Xid reports broken memory (also 63, 92, 94 and 157)."""

from __future__ import annotations

from linkgauge.judge.findings import Evidence, Severity
from linkgauge.model.hardware.part import Part
from linkgauge.model.kernel_log import LogLine

CATALOG = "https://docs.nvidia.com/deploy/xid-errors/analyzing-xid-catalog.html"

BROKEN = {
    46: "the GPU stopped processing",
    48: "ECC cannot correct an error in its memory",
    54: "auxiliary power is not connected",
    62: "its microcontroller halted",
    63: "rows of its memory were remapped",
    64: "rows of its memory cannot be remapped",
    74: "an NVLink failed",
    79: "the GPU has fallen off the bus",
    92: "ECC corrects very many errors",
    94: "a contained memory error",
    95: "an uncontained memory error",
    109: "a context switch timed out",
    110: "a security fault",
    119: "its firmware (GSP) does not answer",
    120: "its firmware (GSP) failed",
    136: "an NVLink did not train",
    140: "ECC cannot correct errors in its memory",
    143: "the GPU did not initialize",
    156: "a broken resource is retired",
    157: "a broken resource cannot be retired",
    158: "a fatal timeout of the GPU",
    167: "a fatal timeout of PCI Express",
    169: "its microcontroller (SEC2) halted",
    171: "an error in its DRAM that cannot be corrected",
    172: "an error in its SRAM that cannot be corrected",
}
_NVLINK_5 = range(144, 151)
_OTHERS = {
    13: "an exception in a program's kernel",
    31: "a program accessed an address that is not mapped",
    43: "a program was stopped after an error of its own",
    45: "a program's work was removed, after another error or because it was killed",
    154: "the action that recovers the GPU has changed",
} | dict.fromkeys(_NVLINK_5, "an error of its NVLinks")
_AFTERMATH = (43, 45)


def meaning_of_xid(code: int | None) -> str:
    """Formats `Xid 79 (the GPU has fallen off the bus)`."""
    meaning = (BROKEN | _OTHERS).get(code or 0)
    name = "an Xid" if code is None else f"Xid {code}"
    return f"{name} ({meaning})" if meaning else name


# What lines of the kernel's log say, and of which part.

LEVEL_WARNING = 4
"""The kernel's log level for warnings; higher numbers are for information."""


def severity_of(line: LogLine) -> Severity:
    """Returns `fail` for broken devices and links, and for uncorrected errors. Of Xids, only those
    of NVLink 5 (144 to 150) state their gravity in the line."""
    match line.kind:
        case "xid" if line.code in _AFTERMATH:
            return "note"
        case "xid" if line.code in BROKEN or (line.gravity == "fatal" and line.code in _NVLINK_5):
            return "fail"
        case "aer" | "hardware" if line.gravity in ("uncorrected", "fatal"):
            return "fail"
        case "sxid" if line.gravity == "fatal":
            return "fail"
        case "driver" if "fallen off the bus" in line.text:
            return "fail"
        case "driver" if line.level is not None and line.level > LEVEL_WARNING:
            return "note"
        case _:
            return "warn"


def broken(evidence: Evidence) -> frozenset[Part]:
    named = evidence.machine.named
    return frozenset(
        Part.pcie_link(name, line.pci) if line.kind == "aer" else Part.device(name)
        for line in (evidence.log.lines if evidence.log else ())
        if severity_of(line) == "fail" and (name := named.get(line.pci or "")) is not None
    )

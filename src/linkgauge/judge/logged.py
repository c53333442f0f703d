"""What lines of the kernel's log say, and of which part."""

from __future__ import annotations

from linkgauge.model.kernel_log import LogLine
from linkgauge.model.part import Part

from .findings import Evidence, Severity
from .xids import severity_of_xid

LEVEL_WARNING = 4
"""Of the kernel's levels; higher numbers are for information."""


def severity_of(line: LogLine) -> Severity:
    """Failures are broken devices and links, and errors that were not corrected."""
    match line.kind:
        case "xid":
            return severity_of_xid(line.code, line.gravity)
        case "aer" | "hardware":
            return "fail" if line.gravity in ("uncorrected", "fatal") else "warn"
        case "sxid":
            return "fail" if line.gravity == "fatal" else "warn"
        case "driver":
            return "note" if line.level is not None and line.level > LEVEL_WARNING else "warn"
        case _:
            return "warn"


def broken(evidence: Evidence) -> frozenset[Part]:
    """The devices, and the PCIe links, that lines call broken."""
    named = evidence.machine.named
    return frozenset(
        Part.pcie_link(name, line.pci) if line.kind == "aer" else Part.device(name)
        for line in (evidence.log.lines if evidence.log else ())
        if severity_of(line) == "fail" and (name := named.get(line.pci or "")) is not None
    )

"""Lines of the kernel's log that appeared during a run and concern what it measures."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

import msgspec

LogKind = Literal[
    "xid", "sxid", "aer", "hotplug", "hardware", "iommu", "out-of-memory", "driver"
]  # fmt: skip
"""An error of an NVIDIA GPU or NVSwitch, of PCI Express, a slot's change, an error of memory or
processors (EDAC, MCE, firmware), a fault of the IOMMU, a killed process, and what else a device's
driver says."""
Gravity = Literal["corrected", "uncorrected", "fatal"]


class LogLine(msgspec.Struct, frozen=True):
    """One line. `seconds` count from the run's start; `text` has escapes for what is not printable.
    `pci` is the function that it names, `level` the kernel's (0 emergency to 7 debug), `code` the
    number of an Xid or SXid, `gravity` what the line itself says of an error; null where it says
    nothing."""

    seconds: float
    text: str
    kind: LogKind
    pci: str | None = None
    level: int | None = None
    code: int | None = None
    gravity: Gravity | None = None


class KernelLog(msgspec.Struct, frozen=True):
    """What the kernel logged during a run. Of a flood of lines, the first are kept and `more`
    counts the others; with `lost`, the kernel overwrote records before they were read. `unknown`
    says why the log could not be read."""

    lines: tuple[LogLine, ...] = ()
    more: int = 0
    lost: bool = False
    unknown: tuple[str, ...] = ()


def joined(logs: Iterable[KernelLog]) -> KernelLog | None:
    """Consecutive logs as one; None of none."""
    logs = tuple(logs)
    if not logs:
        return None
    return KernelLog(
        lines=tuple(line for log in logs for line in log.lines),
        more=sum(log.more for log in logs),
        lost=any(log.lost for log in logs),
        unknown=tuple(dict.fromkeys(why for log in logs for why in log.unknown)),
    )

"""Lines about the measured devices that the kernel logged during a run."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from linkgauge.model.hardware.gaps import Gap
from linkgauge.model.joining import added, each_once, in_series
from linkgauge.model.shareable import FreeText, PciAddress

LogKind = Literal[
    "xid", "sxid", "aer", "hotplug", "hardware", "iommu", "out-of-memory", "driver"
]  # fmt: skip
"""The kind of a line. `xid`, `sxid`: an error of an NVIDIA GPU or NVSwitch. `aer`: of PCI Express.
`hotplug`: a slot's change. `hardware`: an error of memory or processors (EDAC, MCE, firmware).
`iommu`: a fault. `out-of-memory`: a killed process. `driver`: another message of a driver."""
Gravity = Literal["corrected", "uncorrected", "fatal"]


class LogLine(msgspec.Struct, frozen=True):
    """One line of the kernel's log. A field is null if the line does not state it.

    seconds: Seconds from the run's start.
    text: The text, with escapes for characters that are not printable.
    kind: What it reports, such as an error of a GPU (`xid`), NVSwitch (`sxid`) or PCIe (`aer`).
    pci: The PCI address of the function that the line names.
    level: The kernel's level, from 0 (emergency) to 7 (debug).
    code: The number of an Xid or SXid.
    gravity: The severity of the error, as the line states it."""

    seconds: float
    text: FreeText
    kind: LogKind
    pci: PciAddress | None = None
    level: int | None = None
    code: int | None = None
    gravity: Gravity | None = None


class KernelLog(msgspec.Struct, frozen=True):
    """The kernel's messages during a run.

    lines: The lines that concern measured devices; if there are very many, the first ones.
    more: The number of further lines, which are left out.
    lost: Whether the kernel overwrote records before they were read.
    unknown: Why the log could not be read; empty if it was read."""

    lines: Annotated[tuple[LogLine, ...], in_series] = ()
    more: Annotated[int, added] = 0
    lost: Annotated[bool, any] = False
    unknown: Annotated[tuple[Gap, ...], each_once] = ()

"""Which facts about a machine could not be read, and which facts a simulation assumes."""

from __future__ import annotations

from typing import Literal

import msgspec

from linkgauge.model.shareable import GAP, PlaceName, Word

NEEDS_ROOT = "run as root"
"""The end of the reason for a value that only root can read."""


class Gap(str):
    """A text that says which facts could not be read, and why: `FACT, FACT: REASON`."""

    shared = GAP
    fields: tuple[str, ...]
    why: str

    def __new__(cls, why: str, *fields: str) -> Gap:
        gap = super().__new__(cls, f"{', '.join(fields)}: {why}" if fields else why)
        gap.fields, gap.why = fields, why
        return gap


def read_gap(text: str) -> Gap:
    fields, _, why = text.partition(": ")
    return Gap(why, *fields.split(", ")) if why else Gap(text)


# The reasons of a real machine's readers that a simulated machine gives, too.
NONE_LISTED = Gap(
    "/sys/bus/pci/devices lists none (no PCI bus, or a container that hides it: run on the host)",
    "PCI functions",
)
NO_NAMES = Gap("no PCI ID database (package pci.ids)", "names of PCI functions")
NOT_GROUPED = "no group is visible: no IOMMU is in use, or its groups cannot be read"
NO_GROUPS = "no /sys/kernel/iommu_groups (a kernel without IOMMU, a container, or not captured)"
NO_TABLE = (
    "/sys/firmware/dmi/tables/DMI is missing (a board with a device tree, a virtual machine, a "
    "container)"
)


AssumedFact = Literal[
    "PCIe link",
    "link",
    "link between nodes",
    "port",
    "memory size",
    "memory rate",
    "latency",
    "CPUs",
]


class Assumption(msgspec.Struct, frozen=True):
    """A fact that a machine's description does not state, with the value that a simulation uses.

    fact: The kind of fact.
    value: The assumed value, such as `Gen 4 x16`.
    parts: The memories concerned; for a PCIe link above a switch, the devices below the switch."""

    fact: AssumedFact
    value: Word
    parts: tuple[PlaceName, ...]

"""What a check returns, a finding, and what it reads, the evidence."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Literal

import msgspec

from linkgauge.model.inventory import Accelerator, Inventory, PciFunction, is_accelerator
from linkgauge.model.kernel_log import KernelLog
from linkgauge.model.machine import Device, Machine
from linkgauge.model.pci_tree import PciTree
from linkgauge.model.result import CellResult, Result, Run

from .as_one import as_one

Severity = Literal["fail", "warn", "note", "unknown"]
"""`fail` costs bandwidth or correctness, `warn` may, `note` is good to know; `unknown` could not be
read here."""


class Finding(msgspec.Struct, frozen=True):
    """What a check found, and on which device, link or node (`subject`); why it matters; the lines
    that fix it; and the cells and the `lines` of the kernel's log that it rests on. `explained_by`
    names the findings that explain it, as `name` does."""

    check: str
    severity: Severity
    subject: str
    found: str
    why: str = ""
    remedy: tuple[str, ...] = ()
    cells: tuple[str, ...] = ()
    lines: tuple[str, ...] = ()
    explained_by: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """`clocks of sim:3`."""
        return f"{self.check} of {self.subject}"


class Evidence(msgspec.Struct, frozen=True, dict=True, eq=False):
    """What checks judge by: the machine before a run, its inventory after the run, the results, and
    what the kernel logged meanwhile; without a run, the machine alone."""

    before: Machine
    after: Inventory | None = None
    results: tuple[Result, ...] = ()
    log: KernelLog | None = None

    @cached_property
    def inventory(self) -> Inventory:
        return self.before.inventory or Inventory()

    @cached_property
    def devices(self) -> tuple[Device, ...]:
        return tuple(device for found in self.before.devices.values() for device in found)

    @cached_property
    def accelerators(self) -> dict[str, Accelerator]:
        """Accelerators by the notation of their memory."""
        return {accelerator.memory: accelerator for accelerator in self.inventory.accelerators}

    @cached_property
    def functions(self) -> dict[str, PciFunction]:
        """PCI functions by address."""
        return {function.address: function for function in self.inventory.pci}

    @cached_property
    def pci_tree(self) -> PciTree:
        return PciTree(self.inventory.pci)

    @cached_property
    def addresses(self) -> dict[str, str]:
        """The PCI address of each device, by the notation of its memory. Devices known only to PCI
        are listed under their address."""
        known = {a.memory: a.pci for a in self.inventory.accelerators if a.pci}
        known |= {d.memory: d.pci for d in self.devices if d.pci}
        others = (f.address for f in self.inventory.pci if is_accelerator(f))
        return known | {a: a for a in others if a not in known.values()}

    def cells(self) -> Iterator[CellResult]:
        for result in self.results:
            yield from result.cells


def evidence_of(run: Run) -> Evidence:
    run = as_one(run)
    return Evidence(run.machine, run.after, run.results, run.kernel_log)

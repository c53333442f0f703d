"""The path of any transfer of a machine: what each of its legs crosses, and the memories."""

from __future__ import annotations

from functools import cache

from linkgauge.model.inventory import Inventory
from linkgauge.model.machine import Machine
from linkgauge.model.transfer import Access, Memory, Transfer

from .dram import Ceilings, HostMemory
from .fabric import FabricPaths
from .path import Meeting, Path, Segment, Unknown, Use
from .pcie import PciPaths, Trained

MEMORY_SHARE = 0.9
"""Share of the peak of an accelerator's own memory (clock × width) that copies reach: refresh and
turning from reading to writing take the rest. Two H200s reach 0.85 (docs/benchmarks.md), GB200s
0.92 (7.35 of 8 TB/s, Azure HPC blog, "Azure's ND GB200 v6")."""


class Paths:
    """Paths of one machine, found once each."""

    def __init__(self, machine: Machine, ceilings: Ceilings) -> None:
        inventory = machine.inventory or Inventory()
        devices = [device for found in machine.devices.values() for device in found]
        addresses = {a.memory: a.pci for a in inventory.accelerators if a.pci}
        addresses |= {device.memory: device.pci for device in devices if device.pci}
        self._fabric = FabricPaths(inventory.accelerators)
        self._pci = PciPaths(inventory, addresses)
        self._host = HostMemory(machine, ceilings)
        self._rates = {a.memory: a.memory_rate for a in inventory.accelerators}
        self._shares_host = {d.memory for d in devices if d.shares_host_memory}
        self._memory = cache(self._find_memory)

    def knows_host(self, node: int) -> bool:
        """Whether the rate of this node's memory is known, or what this run measured of it."""
        return self._host.knows(node)

    def of(self, transfer: Transfer, size: int, trained: Trained, *, alone: bool) -> Path:
        """The path of a transfer of a cell of `size` bytes, whose only one it may be (`alone`).
        Raises Unknown."""
        if transfer.engine.kind == "cpu":
            return self._host.by_threads(transfer, size)
        path = Path()
        for memory in transfer.memories:
            path += self._memory(memory, alone)
        for begin, end, access, part in transfer.legs():
            path += self._leg(transfer, begin, end, access, part, trained)
        if not path.uses:
            raise Unknown(f"the rate of the memory of {transfer.engine.owner} is unknown")
        return path

    def _find_memory(self, memory: Memory, alone: bool) -> Path:
        place = str(memory.place)
        if place in self._shares_host:
            raise Unknown(f"the memory of {place} is the host's")
        if memory.is_host:
            if memory.kind in ("pageable", "managed"):
                raise Unknown(f"how the driver moves {memory.kind} memory is its own")
            return self._host.reached(memory.place, alone=alone)
        rate = self._rates.get(place)
        if not rate:
            return Path()
        segment = Segment(place, rate, "memory")
        why = f"of memory {MEMORY_SHARE:.0%} is reached"
        return Path((Use(segment, 1.0, 1.0 / MEMORY_SHARE, why),))

    def _leg(
        self,
        transfer: Transfer,
        begin: Memory,
        end: Memory,
        access: Access,
        part: float,
        trained: Trained,
    ) -> Path:
        here, there = str(begin), str(end)
        kernel = transfer.engine.kind == "sm"
        if self._fabric.serves(here, there):
            path = self._fabric.path(here, there, part)
            nodes = [place.index or 0 for place in (begin, end) if place.is_host]
            return path + Path(meets=tuple(Meeting(node, "fabric") for node in nodes))
        owner, other = (end, begin) if access == "read" else (begin, end)
        if other.is_host:
            return self._pci.to_host(str(owner), other.index or 0, access, part, kernel, trained)
        if not (self._fabric.knows(here) and self._fabric.knows(there)):
            raise Unknown(f"whether links of their own join {here} and {there} is unknown")
        return self._pci.between(here, there, access, part, kernel, trained)

"""Finds what part of the host affects a cell's figure, as seen on H100s (docs/gate-errors.md)."""

from __future__ import annotations

from typing import Literal

from linkgauge.model.documents.result import CellResult

from .machine import Machine

HostUse = Literal["none", "memory", "cpus"]


def host_use(cell: CellResult, machine: Machine) -> HostUse:
    owners = [machine.by_memory.get(str(each.engine.owner.place)) for each in cell.transfers]
    engines = {each.engine.kind for each in cell.transfers}
    if not cell.transfers or not cell.does.by_device or engines - {"ce", "sm"}:
        return "cpus"
    if any(owner is None or owner.is_cpu for owner in owners):
        return "cpus"
    memories = [memory for each in cell.transfers for memory in each.memories]
    if any(memory.is_host for memory in memories):
        return "memory" if cell.locked else "cpus"
    shared = any(owner is not None and owner.shares_host_memory for owner in owners)
    return "memory" if shared else "none"

"""Which placement suits a domain and its devices, as a value: what the domain has and nothing is
wrong with is kept, all else planned anew."""

from __future__ import annotations

from collections.abc import Collection

from msgspec.structs import replace

from linkgauge.model.domain import Cell

from .comparison import Comparison
from .planner import MIB, Suited, beside, device_cells, holds, plan

PIN_CHECKS = frozenset({
    "pinned-cpus", "unpinned", "pins-across", "pins-shared", "pins-taken", "pin-threads",
    "device-far", "cells-hidden", "topology-product", "cell-list",
})  # fmt: skip
MEMORY_CHECKS = frozenset({"memory-node", "memory-unbound", "memory-remote", "memory-size"})
PLACEMENT = PIN_CHECKS | MEMORY_CHECKS | {"emulator", "huge-pages-none", "device-node"}
"""Checks whose findings a placement fixes."""


def suited(case: Comparison, found: Collection[str]) -> Suited | None:
    """The placement, given the checks that found something wrong. None if the host has too few
    CPUs or too little memory."""
    keeps_memory = (PIN_CHECKS | MEMORY_CHECKS).isdisjoint(found)
    chosen = _kept(case, keeps_memory) if PIN_CHECKS.isdisjoint(found) else None
    chosen = chosen or plan(case)
    if chosen is None:
        return None
    if "huge-pages-none" in found:
        chosen = replace(chosen, page_size=_page_size(case, chosen))
    is_free = case.domain.policy is None and not case.domain.cell_policies
    if keeps_memory or (is_free and len(case.node_memory) < 2):
        chosen = replace(chosen, nodes={})
    return chosen


def _kept(case: Comparison, keeps_memory: bool) -> Suited | None:
    """The domain's own pins, with memory at their nodes; None if there are none, or the memory does
    not fit there."""
    domain = case.domain
    pins = {vcpu: pin for vcpu in range(domain.vcpus) if (pin := domain.pin_of(vcpu))}
    cells = case.cells or (Cell(0, tuple(range(domain.vcpus)), domain.bytes or 0),)
    nodes = {cell.index: tuple(sorted(case.nodes_of(cell.vcpus))) for cell in cells}
    alone = {at[0]: cell for at, cell in zip(nodes.values(), cells, strict=True) if len(at) == 1}
    if not pins or not (keeps_memory or (len(alone) == len(cells) and holds(case, alone))):
        return None
    taken = {cpu for pin in pins.values() for cpu in pin}
    emulator = domain.emulator_pin
    if emulator is None or not taken.isdisjoint(emulator):
        homes = sorted({node for at in nodes.values() for node in at})
        emulator = beside(case, homes, taken)
    return Suited(
        pins=pins, emulator=emulator, topology=domain.topology, cells=case.cells, nodes=nodes,
        device_cells=device_cells(case, nodes),
    )  # fmt: skip


def _page_size(case: Comparison, chosen: Suited) -> int | None:
    """1 GiB where each node has enough such pages, else 2 MiB, if the host has that size."""
    whole = case.domain.bytes or 0
    shares = {cell.index: cell.memory for cell in chosen.cells} or {0: whole}
    for size in sorted(case.host.huge_pages, reverse=True):
        pools = {
            cell: sum(case.node_pages(node, size)[0] for node in nodes) * size
            for cell, nodes in chosen.nodes.items()
        }
        if all(share % size == 0 and share <= pools.get(cell, 0) for cell, share in shares.items()):
            return size
    return 2 * MIB if 2 * MIB in case.host.huge_pages else None

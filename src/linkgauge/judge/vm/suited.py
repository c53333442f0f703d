"""Which placement suits a domain and its devices, as a value: what the domain has and nothing is
wrong with is kept, all else planned anew."""

from __future__ import annotations

from collections.abc import Collection

from msgspec.structs import replace

from linkgauge.model.domain import Cell

from .comparison import Comparison
from .planner import MIB, Suited, beside, device_cells, nodes_of_pins, plan

PIN_CHECKS = frozenset({
    "pinned-cpus", "unpinned", "pins-across", "pins-shared", "pins-taken", "pin-threads",
    "device-far", "cells-hidden", "topology-product", "cell-list",
})  # fmt: skip
MEMORY_CHECKS = frozenset({"memory-node", "memory-unbound", "memory-remote", "memory-size"})
PLACEMENT = PIN_CHECKS | MEMORY_CHECKS | {"emulator", "huge-pages-none", "device-node"}
"""Checks of which a placement mends what they find."""


def suited(case: Comparison, found: Collection[str]) -> Suited | None:
    """The placement, given the checks that found something wrong. None if the host has too few
    CPUs or too little memory."""
    keeps_pins = PIN_CHECKS.isdisjoint(found)
    chosen = _kept(case) if keeps_pins else plan(case)
    if chosen is None:
        return None
    if keeps_pins and MEMORY_CHECKS.isdisjoint(found):
        policies = {cell: case.domain.policy_of(cell) for cell in chosen.nodes}
        own = {cell: policy.nodes for cell, policy in policies.items() if policy and policy.nodes}
        chosen = replace(chosen, nodes=chosen.nodes | own)
    if "huge-pages-none" in found:
        chosen = replace(chosen, page_size=_page_size(case, chosen))
    return chosen


def _kept(case: Comparison) -> Suited | None:
    """The domain's own pins, with memory at their nodes."""
    domain = case.domain
    pins = {vcpu: pin for vcpu in range(domain.vcpus) if (pin := domain.pin_of(vcpu))}
    if not pins:
        return plan(case)
    cells = case.cells or (Cell(0, tuple(range(domain.vcpus))),)
    nodes = {cell.index: tuple(sorted(nodes_of_pins(case, cell.vcpus))) for cell in cells}
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

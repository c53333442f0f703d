"""What of a domain a guest sees: which vCPU each of its CPUs is, and which node each cell."""

from __future__ import annotations

from collections.abc import Sequence

from linkgauge.model.domain import Cell, Cpus, Domain


def vcpus_of(domain: Domain, cpus: Sequence[int]) -> dict[int, int]:
    """The vCPU of each CPU that the guest has online. Linux numbers CPUs as QEMU's firmware lists
    them: those there at the start, then those that may be added."""
    later = sorted(set(range(domain.vcpus)) - set(domain.enabled))
    order = (*domain.enabled, *later)
    return {cpu: order[cpu] for cpu in cpus if cpu < len(order)}


def nodes_of(cells: Sequence[Cell], nodes: dict[int, Cpus]) -> dict[int, int]:
    """The guest's node of each cell; `nodes` are the vCPUs of each node, as many as the cells.

    A node is recognized by the vCPUs that it shares with a cell; without any, by its number: Linux
    numbers nodes in the order in which the firmware's table names them, which is that of the CPUs,
    then that of memory.
    """
    ranks = sorted(cells, key=lambda cell: (not cell.vcpus, min(cell.vcpus, default=cell.index)))
    usual = {cell.index: node for cell, node in zip(ranks, sorted(nodes), strict=True)}
    shared = {
        (cell.index, node): len({*cell.vcpus}.intersection(cpus))
        for cell in cells
        for node, cpus in nodes.items()
    }
    found: dict[int, int] = {}
    for index, node in sorted(shared, key=lambda pair: (-shared[pair], usual[pair[0]] != pair[1])):
        if index not in found and node not in found.values():
            found[index] = node
    return found


def least_visible(size: int, crash_kernel: int) -> int:
    """What a kernel shows at least of so many bytes of memory (MemTotal).

    It keeps 64 bytes for each page of 4 KiB (1.6 %), its own code and buffers, what firmware and
    swiotlb reserve (64 MiB; of encrypted guests 6 %, at most 1 GiB), and the memory set aside for
    a crash kernel.
    """
    return int(size * (1 - _SHARE)) - _FIXED - crash_kernel


_SHARE, _FIXED = 0.08, 256 << 20

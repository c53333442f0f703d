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
    """The guest's node of each cell; `nodes` are the vCPUs of each node.

    Linux numbers nodes in the order in which the firmware's table names them, first those with
    CPUs, so a node is recognized by its CPUs, then by its number, then by its place among those
    left. The counts must be the same.
    """
    found: dict[int, int] = {}
    free = dict(nodes)
    for cell in cells:
        same = [node for node, cpus in free.items() if cpus and set(cpus) == set(cell.vcpus)]
        if same:
            found[cell.index] = same[0]
            del free[same[0]]
    for cell in cells:
        if cell.index not in found and cell.index in free:
            found[cell.index] = cell.index
            del free[cell.index]
    left = [cell.index for cell in cells if cell.index not in found]
    return found | dict(zip(left, sorted(free), strict=True))


def least_visible(size: int, crash_kernel: int) -> int:
    """What a kernel shows at least of so many bytes of memory (MemTotal).

    It keeps 64 bytes for each page of 4 KiB (1.6 %), its own code and buffers, what firmware and
    swiotlb reserve (64 MiB; of encrypted guests 6 %, at most 1 GiB), and the memory set aside for
    a crash kernel.
    """
    return int(size * (1 - _SHARE)) - _FIXED - crash_kernel


_SHARE, _FIXED = 0.08, 256 << 20

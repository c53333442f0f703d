"""Pinned memory of a rank's own host, on the node of its CPUs: what members without devices
have."""

from __future__ import annotations

import os
from collections.abc import Sequence

from linkgauge import _native
from linkgauge.backends import native
from linkgauge.machine.host import read_host
from linkgauge.model.machine import Device, Node
from linkgauge.model.memory import Memory

from .member import Allocate, Allocated


class HostMemory:
    """The host's memory as this process, rank `rank`, uses it."""

    def __init__(self, rank: int) -> None:
        self._rank = rank
        self._host = read_host()
        self.cpus = sorted(os.sched_getaffinity(0))
        self.node = _home(self._host.nodes, self.cpus)

    def device(self, driver: str) -> Device:
        """The memory as a device, of which each rank has one; `driver` moves its bytes."""
        free = self.node.memory_available or self.node.memory_total or 0
        return Device(
            memory=f"host:{self.node.index}@{self._rank}",
            model="host memory",
            memory_bytes=free,
            largest_buffer=free,
            driver=driver,
            shares_host_memory=True,
            near=self.node.index,
        )

    def allocate(self, command: Allocate, handle: bytes = b"") -> tuple[_native.Memory, Allocated]:
        """Raises AllocationError, and Unsupported if it cannot be placed."""
        memory, index = Memory("host", self.node.index), self.node.index
        alone = len(self._host.nodes) == 1
        kind = native.KINDS[""]
        pages, placement = native.allocate(memory, command.size, kind, index, alone, self.cpus)
        warnings = tuple(native.misplaced(memory, placement))
        return pages, Allocated(placement, warnings, handle)


def _home(nodes: Sequence[Node], cpus: Sequence[int]) -> Node:
    """The node with most of the CPUs that this process may use."""
    return max(nodes, key=lambda node: len({*node.cpus} & {*cpus}))

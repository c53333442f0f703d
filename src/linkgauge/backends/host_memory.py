"""How host memory is allocated for buffers of all backends, and filled by host threads."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from random import SystemRandom

from linkgauge._native import Kind
from linkgauge.backends import native
from linkgauge.machine.host import read_host
from linkgauge.model.documents.result import Placement
from linkgauge.model.hardware.machine import Device
from linkgauge.model.memory import Memory
from linkgauge.model.transfer import Engine

from .offering import own
from .protocol import Buffer, Pattern


def usable_cpus() -> list[int]:
    return sorted(os.sched_getaffinity(0))


class ByThreads:
    address: int
    cpus: Sequence[int]

    def at(self) -> AbstractContextManager[int]:
        return nullcontext(self.address)

    def fill(self, size: int, pattern: Pattern, seed: int, inverted: bool) -> None:
        with self.at() as address:
            native.fill(address, size, pattern, seed, inverted, self.cpus)

    def first_mismatch(self, size: int, pattern: Pattern, seed: int) -> int | None:
        with self.at() as address:
            return native.first_mismatch(address, size, pattern, seed, self.cpus)

    def checksum(self, size: int) -> int:
        with self.at() as address:
            return native.checksum(address, size, self.cpus)


class NodeMemory(ByThreads):
    """A buffer on the NUMA node `node` (None: any), whose pages threads on `cpus` touch first."""

    def __init__(
        self,
        memory: Memory,
        size: int,
        node: int | None,
        alone: bool = True,
        cpus: Sequence[int] = (),
        kind: Kind | None = None,
        nodes: Sequence[int] = (),
    ) -> None:
        self.memory, self.size = memory, size
        self.cpus = cpus or usable_cpus()
        kind = native.KINDS.get(memory.kind, Kind.PINNED) if kind is None else kind
        self.pages, self.placed = native.allocate(memory, size, kind, node, alone, self.cpus, nodes)
        self.address = self.pages.address
        self.warnings = tuple(native.misplaced(memory, self.placed))

    def placement(self) -> Placement:
        return self.placed

    def free(self) -> None:
        self.pages.close()


# A device's buffer begins at a random place in its allocation, so that runs show what addresses do.

_SHIFT, _SHIFT_STEP = 64 << 20, 2 << 20
"""A device buffer begins at a random offset in its allocation: a multiple of the step, up to
_SHIFT. Addresses affect the speed of copies, and the driver gives every process the same ones.
Without the offset, runs would therefore hide how much the device's speed varies."""


def shift_within(size: int) -> int:
    return SystemRandom().randrange(min(_SHIFT, size) // _SHIFT_STEP + 1) * _SHIFT_STEP


class HostRank:
    def __init__(self, rank: int, driver: str) -> None:
        self.rank, self._driver = rank, driver
        self.cpus = usable_cpus()
        nodes = read_host().nodes
        # The node with most of the CPUs that this process may use.
        self._node = max(nodes, key=lambda node: len({*node.cpus} & {*self.cpus}))
        self._alone = len(nodes) == 1
        self.home = Memory("host", self._node.index)

    def devices(self) -> tuple[Device, ...]:
        node = self._node
        free = node.memory_available or node.memory_total or 0
        device = Device(
            memory=f"{self.home}@{self.rank}",
            model="host memory",
            memory_bytes=free,
            largest_buffer=free,
            driver=self._driver,
            shares_host_memory=True,
            near=node.index,
        )
        return (device,)

    def allocate(self, memory: Memory, size: int, engine: Engine) -> NodeMemory:
        return NodeMemory(self.home, size, self._node.index, self._alone, self.cpus)

    def fill(self, buffer: Buffer, size: int, pattern: Pattern, seed: int, inverted: bool) -> None:
        own(buffer, ByThreads, "host's").fill(size, pattern, seed, inverted)

    def first_mismatch(self, buffer: Buffer, size: int, pattern: Pattern, seed: int) -> int | None:
        return own(buffer, ByThreads, "host's").first_mismatch(size, pattern, seed)

    def checksum(self, buffer: Buffer, size: int) -> int:
        return own(buffer, ByThreads, "host's").checksum(size)

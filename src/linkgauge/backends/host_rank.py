"""The host memory of a rank that has no device. The memory is pinned and near the rank's CPUs."""

from __future__ import annotations

from linkgauge.machine.host import read_host
from linkgauge.model.hardware.machine import Device
from linkgauge.model.memory import Memory
from linkgauge.model.transfer import Engine

from .host_memory import ByThreads, NodeMemory, usable_cpus
from .offering import own
from .protocol import Buffer, Pattern


class HostRank:
    """The host memory of a rank. `driver` names the library that moves the bytes."""

    def __init__(self, rank: int, driver: str) -> None:
        self.rank, self._driver = rank, driver
        self.cpus = usable_cpus()
        nodes = read_host().nodes
        # The node with most of the CPUs that this process may use.
        self._node = max(nodes, key=lambda node: len({*node.cpus} & {*self.cpus}))
        self._alone = len(nodes) == 1
        self.home = Memory("host", self._node.index)

    def devices(self) -> tuple[Device, ...]:
        """Returns the host memory as the only device."""
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
        """Allocates host memory. Raises AllocationError if memory is short, and Unsupported if the
        memory cannot be placed on its node."""
        return NodeMemory(self.home, size, self._node.index, self._alone, self.cpus)

    def fill(self, buffer: Buffer, size: int, pattern: Pattern, seed: int, inverted: bool) -> None:
        own(buffer, ByThreads, "host's").fill(size, pattern, seed, inverted)

    def first_mismatch(self, buffer: Buffer, size: int, pattern: Pattern, seed: int) -> int | None:
        return own(buffer, ByThreads, "host's").first_mismatch(size, pattern, seed)

    def checksum(self, buffer: Buffer, size: int) -> int:
        return own(buffer, ByThreads, "host's").checksum(size)

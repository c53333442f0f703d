"""What the kernel reports about a host beyond model.hardware.machine.Host, and published facts
about families of server processors."""

from __future__ import annotations

from typing import Literal

import msgspec

from linkgauge.model.shareable import KernelOptions, Product, Version, Word

from .gaps import Gap


class CpuCache(msgspec.Struct, frozen=True):
    """One kind of CPU cache of a host.

    level: The level of the cache, from 1.
    kind: What the cache holds: `data`, `instruction` or `unified`.
    size: The size in bytes of one cache of this kind.
    shared_by: How many CPUs share one cache."""

    level: int
    kind: Word
    size: int
    shared_by: int


UNREACHABLE = 255
"""The distance of a node whose memory cannot be reached (ACPI 6.5, 5.2.17, the SLIT)."""


class HostDetails(msgspec.Struct, frozen=True, kw_only=True):
    """What the kernel reports about the host. A null value is unreadable (see `unknown`) or absent.

    cpu_vendor: The vendor as the processor names it (x86 only).
    cpu_code: The processor's vendor, family and model (x86), or implementer and part (Arm).
    sockets: The number of sockets.
    cores: The number of cores.
    threads_per_core: The most threads that a core has.
    isa: The instruction set, with its level or extensions.
    caches: Each kind of cache, from the innermost on.
    distances: The kernel's NUMA distances, a row for each node; 255: the memory cannot be reached.
    node_cpus: All CPUs of each node.
    huge_pages: Total and free huge pages, by the size of a page in bytes.
    transparent_huge_pages: The kernel's setting: `always`, `madvise` or `never`.
    governor: The governor that chooses the CPUs' frequency; several, with commas, if CPUs differ.
    frequency_driver: The driver that sets the frequency; several, with commas, if CPUs differ.
    firmware: The version of the BIOS and its date; null also if the machine does not show them.
    microcode: The versions of the CPUs' microcode, each once (x86 only).
    command_line: The kernel's command line, without secrets.
    iommu: How the IOMMU translates devices' addresses.
    aspm_policy: The kernel's policy for saving power on PCIe links (ASPM).
    hypervisor: The hypervisor that the kernel runs under.
    container: What kind of container this process runs in.
    allowed_cpus: The CPUs that this process may use.
    allowed_cores: The number of cores that the allowed CPUs belong to.
    allowed_nodes: The nodes whose memory this process may use.
    memory_limit: Bytes of memory that this process's cgroup allows.
    memlock_limit: Bytes that this process may lock in memory.
    steal: The share of all CPUs' time since boot that the hypervisor took, from 0 to 1.
    cpu_ticks: The clock ticks of all CPUs since boot, to compute `steal` between two moments.
    memory_rate: The rate of the DIMMs of all channels in bytes/s; null also if firmware hides it.
    memory_channels: The number of memory channels that have a module (DIMM).
    memory_channels_empty: The number of memory channels whose slots are all empty.
    gpudirect: What gives adapters access to accelerators: a kernel module, `DMA-BUF` or `none`.
    unknown: What could not be read, and why."""

    cpu_vendor: Product | None = None
    cpu_code: Word | None = None
    sockets: int | None = None
    cores: int | None = None
    threads_per_core: int | None = None
    isa: Word | None = None
    caches: tuple[CpuCache, ...] = ()
    distances: dict[int, tuple[int, ...]] = {}
    node_cpus: dict[int, tuple[int, ...]] = {}
    huge_pages: dict[int, tuple[int, int]] = {}
    transparent_huge_pages: Word | None = None
    governor: Word | None = None
    frequency_driver: Word | None = None
    firmware: Version | None = None
    microcode: Word | None = None
    command_line: KernelOptions | None = None
    iommu: Literal["off", "passthrough", "translating"] | None = None
    aspm_policy: Word | None = None
    hypervisor: Word | None = None
    container: Word | None = None
    allowed_cpus: tuple[int, ...] | None = None
    allowed_cores: int | None = None
    allowed_nodes: tuple[int, ...] | None = None
    memory_limit: int | None = None
    memlock_limit: int | None = None
    steal: float | None = None
    cpu_ticks: float | None = None
    memory_rate: float | None = None
    memory_channels: int | None = None
    memory_channels_empty: int | None = None
    gpudirect: Word | None = None
    unknown: tuple[Gap, ...] = ()

    @property
    def separate(self) -> frozenset[tuple[int, int]]:
        """The pairs (a, b) of nodes for which CPUs of node a cannot reach memory of node b."""
        return frozenset(
            (node, other)
            for node, row in self.distances.items()
            for other, distance in zip(self.distances, row, strict=False)
            if distance == UNREACHABLE
        )

    @property
    def within(self) -> dict[tuple[int, int], str]:
        """How each pair of nodes lies: `within` a socket, `between the same places of` two sockets
        (their nth nodes), or `across` sockets. Empty if there are more than two NUMA distances, if
        a socket has only one node, or if sockets have different numbers of nodes."""
        nodes = sorted(self.distances)
        each, rest = divmod(len(nodes), self.sockets or len(nodes) or 1)
        if each < 2 or rest or len({far for row in self.distances.values() for far in row}) > 2:
            return {}
        ways = {0: "within", each: "between the same places of"}
        return {
            (a, b): ways.get(abs(at - to) if at // each != to // each else 0, "across")
            for at, a in enumerate(nodes)
            for to, b in enumerate(nodes)
        }


def stolen(before: HostDetails, after: HostDetails) -> float | None:
    if before.steal is None or before.cpu_ticks is None:
        return None
    if after.steal is None or after.cpu_ticks is None or after.cpu_ticks <= before.cpu_ticks:
        return None
    stolen = after.steal * after.cpu_ticks - before.steal * before.cpu_ticks
    return stolen / (after.cpu_ticks - before.cpu_ticks)

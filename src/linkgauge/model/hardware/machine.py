"""A machine's description as plain values: read by machine/ and the backends, kept in every run."""

from __future__ import annotations

from collections import Counter
from functools import cached_property
from typing import Literal

import msgspec
from msgspec.structs import replace

from linkgauge.model.notation import parse_memory
from linkgauge.model.ranks import Oversubscription, Rank

from .inventory import Accelerator, Inventory, PciFunction, is_accelerator
from .pcie import PciTree
from .wiring import Wiring

MemoryKind = Literal["DRAM", "HBM", "NVM", "CXL"]


class Node(msgspec.Struct, frozen=True):
    """A NUMA node.

    index: The node's number.
    cpus: The CPUs of it that this process may use; none for a node that has only memory.
    memory_total: Size of its memory in bytes; null if unknown.
    memory_available: Bytes of its memory that are available; null if unknown.
    last_level_cache: Bytes of all last-level caches of these CPUs; null if unknown.
    cores: One of these CPUs for each core.
    kind: The kind of its memory; null if unknown."""

    index: int
    cpus: tuple[int, ...]
    memory_total: int | None = None
    memory_available: int | None = None
    last_level_cache: int | None = None
    cores: tuple[int, ...] = ()
    kind: MemoryKind | None = None


class Device(msgspec.Struct, frozen=True):
    """An accelerator as its backend describes it.

    memory: Its memory, in the notation (`opencl:0`).
    model: The hardware's name.
    memory_bytes: Size of its memory in bytes.
    largest_buffer: The largest allocation in bytes.
    driver: The version of its driver; empty if unknown.
    shares_host_memory: Whether its memory is the host's DRAM.
    near: The host node closest to it.
    pci: Its PCI address as sysfs writes it (0000:1b:00.0); null if unknown.
    uuid: Its vendor's name for it; null if unknown.
    notes: Remarks of its backend.
    is_cpu: Whether it is the host's processor by another name (PoCL).
    node: For a device that stands for a network interface of a cluster, the node that it belongs
        to; else null.
    rail: For such a device, its rail: the interfaces of all nodes that the same switches join; null
        if the node has only one."""

    memory: str
    model: str
    memory_bytes: int
    largest_buffer: int
    driver: str = ""
    shares_host_memory: bool = False
    near: int = 0
    pci: str | None = None
    uuid: str | None = None
    notes: tuple[str, ...] = ()
    is_cpu: bool = False
    node: str | None = None
    rail: str | None = None

    @property
    def index(self) -> int:
        return int(self.memory.rpartition(":")[2].partition("@")[0])


class Host(msgspec.Struct, frozen=True):
    """The host: names as the kernel reports them.

    hostname: Its name.
    system: The operating system's name; empty if unreadable.
    kernel: The kernel's release; empty if unreadable.
    architecture: The architecture, as `uname -m` prints it; empty if unreadable.
    cpu_model: The processor's name; null if unreadable.
    cpus: How many CPUs this process may use.
    nodes: The NUMA nodes that have memory.
    memory_total: Size of its memory in bytes; null if unreadable.
    memory_available: Bytes of memory that this process may still take; null if unreadable.
    memlock_limit: Bytes that this process may lock in memory; null: no limit, or unreadable.
    transparent_huge_pages: When the kernel uses transparent huge pages (`always`, `madvise`,
        `never`); null if unreadable.
    last_level_cache: Bytes of all last-level caches of these CPUs; null if unreadable.
    """

    hostname: str
    system: str
    kernel: str
    architecture: str
    cpu_model: str | None
    cpus: int
    nodes: tuple[Node, ...]
    memory_total: int | None
    memory_available: int | None
    memlock_limit: int | None
    transparent_huge_pages: str | None
    last_level_cache: int | None = None


class Machine(msgspec.Struct, frozen=True, dict=True):
    """A host, its accelerators by backend, and why a backend has none.

    host: The host; with several ranks, rank 0's.
    devices: The accelerators of each backend.
    unavailable: Why a backend is not available, by its name.
    linkgauge: The version of linkgauge.
    commit: The commit of its checkout; null if it does not run from one.
    python: The version of Python.
    simulated: The name of its description, if it is simulated; else null.
    inventory: What else is known of it; null in files of earlier versions.
    ranks: The processes that measure, if they are several.
    crowd: The machine with the most ranks per CPU, if it has more ranks than CPUs; else null."""

    host: Host
    devices: dict[str, tuple[Device, ...]] = {}
    unavailable: dict[str, str] = {}
    linkgauge: str = ""
    commit: str | None = None
    python: str = ""
    simulated: str | None = None
    inventory: Inventory | None = None
    ranks: tuple[Rank, ...] = ()
    crowd: Oversubscription | None = None

    @cached_property
    def all_devices(self) -> tuple[Device, ...]:
        """The devices of all backends."""
        return tuple(device for devices in self.devices.values() for device in devices)

    @cached_property
    def shared(self) -> frozenset[str]:
        """The memories of ranks that share one device."""
        hosts = {rank.number: rank.host for rank in self.ranks}
        keys = {
            device.memory: (
                hosts.get(parse_memory(device.memory).rank or 0),
                device.pci or device.uuid,
            )
            for device in self.all_devices
            if device.pci or device.uuid
        }
        ranks = Counter(keys.values())
        return frozenset(memory for memory, key in keys.items() if self.ranks and ranks[key] > 1)

    @cached_property
    def known(self) -> Inventory:
        """The inventory, empty if there is none."""
        return self.inventory or Inventory()

    @property
    def is_virtual(self) -> bool:
        """Whether bridges are a hypervisor's. Their registers are then fictitious and prove
        nothing."""
        return self.known.host.hypervisor is not None

    @cached_property
    def accelerators(self) -> dict[str, Accelerator]:
        """Accelerators by the notation of their memory."""
        return {accelerator.memory: accelerator for accelerator in self.known.accelerators}

    @cached_property
    def addresses(self) -> dict[str, str]:
        """The PCI address of each device, by the notation of its memory. Devices known only to PCI
        are listed under their address."""
        known = {a.memory: a.pci for a in self.known.accelerators if a.pci}
        known |= {d.memory: d.pci for d in self.all_devices if d.pci}
        others = (f.address for f in self.known.pci if is_accelerator(f))
        return known | {a: a for a in others if a not in known.values()}

    @cached_property
    def named(self) -> dict[str, str]:
        """The devices by their PCI address."""
        return {address: name for name, address in self.addresses.items()}

    @cached_property
    def pci_tree(self) -> PciTree:
        return PciTree(self.known.pci)

    @property
    def functions(self) -> dict[str, PciFunction]:
        """PCI functions by address."""
        return self.pci_tree.functions

    def pci_line(self, address: str) -> tuple[PciFunction, ...]:
        """A function and each bridge above it, without a hypervisor's bridges; empty if the address
        is unknown."""
        function = self.functions.get(address)
        if function is None:
            return ()
        return (function, *(() if self.is_virtual else self.pci_tree.above(address)))

    @cached_property
    def wiring(self) -> Wiring:
        """The graph of the machine's parts and links, made once for all who use it."""
        return Wiring(self)

    @cached_property
    def alone(self) -> Machine:
        """The machine as one process would see it, if several ranks on it have a device each; any
        other machine unchanged."""
        names = {str(parse_memory(device.memory).unranked) for device in self.all_devices}
        hosts = {rank.host for rank in self.ranks}
        if len(hosts) != 1 or len(names) < len(self.all_devices):
            return self
        devices = {name: tuple(map(_unranked, found)) for name, found in self.devices.items()}
        return replace(self, devices=devices, ranks=(), crowd=None)


def _unranked(device: Device) -> Device:
    return replace(device, memory=str(parse_memory(device.memory).unranked))

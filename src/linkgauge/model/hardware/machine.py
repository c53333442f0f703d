"""The description of a machine, which machine/ and the backends read, and every run contains."""

from __future__ import annotations

from collections import Counter
from functools import cached_property
from itertools import chain
from typing import Literal

import msgspec
from msgspec.structs import replace

from linkgauge.model.notation import parse_memory
from linkgauge.model.printable import BriefRepr
from linkgauge.model.ranks import Oversubscription, Rank
from linkgauge.model.shareable import (
    Digest,
    Facts,
    HostName,
    Identity,
    MachineName,
    MemoryName,
    OwnName,
    PciAddress,
    PlaceName,
    Product,
    Reason,
    Version,
    Word,
)

from .inventory import Accelerator, Inventory, PciFunction
from .pcie import PciTree, is_accelerator
from .wiring import Wired, Wiring

MemoryKind = Literal["DRAM", "HBM", "NVM", "CXL"]
UNNAMED = ("GPU", "accelerator")
"""The models of accelerators whose product is unknown."""


class Node(msgspec.Struct, frozen=True):
    """A NUMA node of the host.

    index: The node's number.
    cpus: The node's CPUs that this process may use; none for a node that has only memory.
    memory_total: Size of its memory in bytes; null if unknown.
    memory_available: Bytes of its memory that are available; null if unknown.
    last_level_cache: Bytes of all last-level caches of the node's CPUs; null if unknown.
    cores: One CPU of each core of the node.
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

    memory: The name of its memory, such as `opencl:0`.
    model: The hardware's name.
    memory_bytes: Size of its memory in bytes.
    largest_buffer: The largest allocation in bytes.
    driver: The version of its driver; empty if unknown.
    shares_host_memory: Whether its memory is the host's DRAM.
    near: The NUMA node closest to the device.
    pci: Its PCI address as sysfs writes it (0000:1b:00.0); null if unknown.
    uuid: The vendor's unique name of the device; null if unknown.
    notes: Remarks of its backend about the device.
    is_cpu: Whether the device is the host's processor, which a backend such as PoCL offers.
    node: The cluster node whose network interface the device represents; else null.
    rail: Its rail (nodes' interfaces on the same switches); null for a node's only interface."""

    memory: MemoryName
    model: Product
    memory_bytes: int
    largest_buffer: int
    driver: Version = ""
    shares_host_memory: bool = False
    near: int = 0
    pci: PciAddress | None = None
    uuid: Identity | None = None
    notes: tuple[Facts, ...] = ()
    is_cpu: bool = False
    node: PlaceName | None = None
    rail: PlaceName | None = None

    @property
    def index(self) -> int:
        return int(self.memory.rpartition(":")[2].partition("@")[0])


class Host(msgspec.Struct, frozen=True):
    """The host, with names and limits as the kernel reports them.

    hostname: Its name.
    system: The name of the operating system; empty if unreadable.
    kernel: The kernel's release; empty if unreadable.
    architecture: The architecture, as `uname -m` prints it; empty if unreadable.
    cpu_model: The processor's name; null if unreadable.
    cpus: How many CPUs this process may use.
    nodes: The NUMA nodes that have memory.
    memory_total: Size of its memory in bytes; null if unreadable.
    memory_available: Bytes of memory that this process may still take; null if unreadable.
    memlock_limit: Bytes that this process may lock in memory; null if unlimited or unreadable.
    transparent_huge_pages: The kernel's setting: `always`, `madvise`, `never`; null if unreadable.
    last_level_cache: Bytes of all last-level caches of the CPUs; null if unreadable."""

    hostname: HostName
    system: Version
    kernel: Version
    architecture: Word
    cpu_model: Product | None
    cpus: int
    nodes: tuple[Node, ...]
    memory_total: int | None
    memory_available: int | None
    memlock_limit: int | None
    transparent_huge_pages: Word | None
    last_level_cache: int | None = None


class Machine(BriefRepr, msgspec.Struct, frozen=True, dict=True):
    """A machine: its host, the accelerators of each backend, and why other backends are
    unavailable.

    host: The host; with several ranks, the host of rank 0.
    devices: The accelerators of each backend.
    unavailable: The reason for each backend that is unavailable, by the backend's name.
    linkgauge: The version of linkgauge.
    commit: The commit of linkgauge's checkout; null if linkgauge does not run from a checkout.
    python: The version of Python.
    simulated: The name of the simulated machine's description; null if the machine is real.
    inventory: The other facts about the machine; null in files of earlier versions.
    ranks: The processes that measure, if there are several.
    oversubscription: The host with the most ranks per CPU, if above one rank per CPU; else null.
    unanswered: The unavailable backends that did not answer in time: they may have devices."""

    host: Host
    devices: dict[OwnName, tuple[Device, ...]] = {}
    unavailable: dict[OwnName, Reason] = {}
    linkgauge: Version = ""
    commit: Digest | None = None
    python: Version = ""
    simulated: MachineName | None = None
    inventory: Inventory | None = None
    ranks: tuple[Rank, ...] = ()
    oversubscription: Oversubscription | None = None
    unanswered: tuple[OwnName, ...] = ()

    @cached_property
    def all_devices(self) -> tuple[Device, ...]:
        return tuple(chain.from_iterable(self.devices.values()))

    @cached_property
    def by_memory(self) -> dict[str, Device]:
        return {device.memory: device for device in self.all_devices}

    @cached_property
    def shared(self) -> frozenset[str]:
        if not self.ranks:
            return frozenset()
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
        return frozenset(memory for memory, key in keys.items() if ranks[key] > 1)

    @cached_property
    def known(self) -> Inventory:
        return self.inventory or Inventory()

    @property
    def is_virtual(self) -> bool:
        """Whether this is a virtual machine, in which registers of PCI bridges prove nothing."""
        return self.known.host.hypervisor is not None

    @cached_property
    def accelerators(self) -> dict[str, Accelerator]:
        return {accelerator.memory: accelerator for accelerator in self.known.accelerators}

    @cached_property
    def addresses(self) -> dict[str, str]:
        """The PCI address of each accelerator, by the name of its memory (`cuda:0`). If no backend
        lists the accelerator, the name is the address itself."""
        known: tuple[Accelerator | Device, ...] = (*self.known.accelerators, *self.all_devices)
        found = {one.memory: one.pci for one in known if one.pci}
        listed = set(found.values())
        for function in filter(is_accelerator, self.known.pci):
            if function.address not in listed:
                found[function.address] = function.address
        return found

    @cached_property
    def endpoints(self) -> dict[str, str]:
        return self.addresses | {one.device: one.pci for one in self.known.adapters if one.pci}

    @cached_property
    def named(self) -> dict[str, str]:
        return dict(zip(self.addresses.values(), self.addresses, strict=True))

    @cached_property
    def pci_tree(self) -> PciTree:
        return PciTree(self.known.pci)

    @property
    def functions(self) -> dict[str, PciFunction]:
        return self.pci_tree.functions

    def pci_line(self, address: str) -> tuple[PciFunction, ...]:
        """Returns the PCI function and, except in a guest, all bridges above it, closest first."""
        function = self.functions.get(address)
        if function is None:
            return ()
        return (function, *(() if self.is_virtual else self.pci_tree.above(address)))

    @cached_property
    def wiring(self) -> Wiring:
        """The graph of the machine's parts and links. It is built once."""
        return Wiring(
            Wired(
                known=self.known,
                nodes={f"host:{n.index}": (len(n.cpus), n.memory_total) for n in self.host.nodes},
                devices={one.memory: (one.model, one.near) for one in self.all_devices},
                accelerators=self.accelerators,
                addresses=self.addresses,
                endpoints=self.endpoints,
                functions=self.functions,
                line=self.pci_line,
            )
        )

    @cached_property
    def alone(self) -> Machine:
        """The machine without ranks, if all ranks are on one host and use different devices; else
        the machine itself."""
        if not self.ranks or len({rank.host for rank in self.ranks}) > 1:
            return self
        found = self.on(self.ranks[0].host)
        return found if len(found.by_memory) == len(self.all_devices) else self

    def on(self, host: str) -> Machine:
        """Returns the part of the machine on `host`: its devices, named without ranks."""
        here = {rank.number for rank in self.ranks if rank.host == host}
        devices = {
            name: tuple(_unranked(one) for one in found if parse_memory(one.memory).rank in here)
            for name, found in self.devices.items()
        }
        return replace(self, devices=devices, ranks=(), oversubscription=None)


def _unranked(device: Device) -> Device:
    return replace(device, memory=str(parse_memory(device.memory).unranked))

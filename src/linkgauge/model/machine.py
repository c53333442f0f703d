"""A machine's description as plain values: read by machine/ and the backends, kept in every run."""

from __future__ import annotations

from typing import Literal

import msgspec

from .inventory import Inventory
from .ranks import Crowd, Rank

MemoryKind = Literal["DRAM", "HBM", "NVM", "CXL"]


class Node(msgspec.Struct, frozen=True):
    """A NUMA node. `cpus` are those this process may use (none: a node of memory alone), `cores`
    one of them for each core; sizes in bytes, null if unknown. The `last_level_cache` is all that
    these CPUs have; `kind` is that of the memory, null if nothing tells."""

    index: int
    cpus: tuple[int, ...]
    memory_total: int | None = None
    memory_available: int | None = None
    last_level_cache: int | None = None
    cores: tuple[int, ...] = ()
    kind: MemoryKind | None = None


class Device(msgspec.Struct, frozen=True):
    """An accelerator as its backend describes it.

    `memory` is its notation (`opencl:0`), `model` the hardware's name, `memory_bytes` the size of
    its memory and `largest_buffer` the limit of one allocation. With `shares_host_memory`, its
    memory is the host's DRAM; with `is_cpu`, it is the host's processor by another name (PoCL).
    `near` is the host node closest to it. `pci` is its address as sysfs writes it (0000:1b:00.0),
    `uuid` its vendor's name for it; null if unknown. One that stands for a network interface of a
    cluster belongs to a `node` and to a `rail`: those of all nodes that are joined by the same
    switches (null: the node has no other).
    """

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
    """The host: names as the kernel reports them, sizes in bytes, null if unreadable."""

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


class Machine(msgspec.Struct, frozen=True):
    """A host, its accelerators by backend, and why a backend has none. `linkgauge` is its own
    version and `commit` that of its checkout, if it runs from one; `simulated` names the
    description if the machine is simulated; `inventory` is what else is known of it. `ranks` are
    the processes that measure, if they are several: the host is rank 0's. The `crowd` is where
    most of them share the fewest CPUs, if they are more than these."""

    host: Host
    devices: dict[str, tuple[Device, ...]] = {}
    unavailable: dict[str, str] = {}
    linkgauge: str = ""
    commit: str | None = None
    python: str = ""
    simulated: str | None = None
    inventory: Inventory | None = None
    ranks: tuple[Rank, ...] = ()
    crowd: Crowd | None = None

    @property
    def all_devices(self) -> tuple[Device, ...]:
        """Those of all backends."""
        return tuple(device for devices in self.devices.values() for device in devices)

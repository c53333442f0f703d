"""Facts to compare a machine with a virtual machine's definition, beyond the inventory: what a
hypervisor made for a guest, and where on a host a guest may be placed."""

from __future__ import annotations

import msgspec

from .inventory import PciFunction

Cpus = tuple[int, ...]


class BusFunction(PciFunction, frozen=True, kw_only=True):
    """Any PCI function. `route` has the addresses from its root bus down to itself (none: unknown),
    `subsystem` is the subsystem's vendor; null is a value that could not be read. `windows` has
    each region (BAR) whose size can be chosen: its number, its bytes, and the most."""

    route: tuple[str, ...] = ()
    subsystem: int | None = None
    windows: tuple[tuple[int, int, int], ...] = ()

    @property
    def is_known(self) -> bool:
        """Whether the function's files could be read at all."""
        return self.class_code is not None


class Virtual(msgspec.Struct, frozen=True, kw_only=True):
    """Facts of a guest or its host. `siblings` are the CPUs of each CPU's core; `node_pages` counts
    huge pages (total, free) by node and by size in bytes; `crash_kernel` is the memory in bytes
    that the kernel reserves for a crash kernel; `signs` distinguish a guest from a host, in words.
    `functions` is null if PCI cannot be read. `kvm` is the loaded module by which KVM uses this
    processor; null if there is none."""

    siblings: dict[int, Cpus] = {}
    node_pages: dict[int, dict[int, tuple[int, int]]] = {}
    functions: tuple[BusFunction, ...] | None = None
    crash_kernel: int = 0
    signs: tuple[str, ...] = ()
    kvm: str | None = None


class RunningDomain(msgspec.Struct, frozen=True, kw_only=True):
    """A running virtual machine with the CPUs that its threads may use, from its control groups.
    `name` is libvirt's, shortened and without special characters; `nodes` are those that its memory
    may come from."""

    name: str
    vcpus: dict[int, Cpus] = {}
    emulator: Cpus | None = None
    iothreads: dict[int, Cpus] = {}
    nodes: Cpus | None = None

"""The facts to compare a machine with a virtual machine's definition, beyond the inventory. They
say what a hypervisor provides to a guest, and where on a host a guest may be placed."""

from __future__ import annotations

import msgspec

from .inventory import PciFunction

Cpus = tuple[int, ...]


class BusFunction(PciFunction, frozen=True, kw_only=True):
    """Any PCI function. `route` has the addresses from the root bus down to the function; empty if
    unknown. `subsystem` is the vendor number of the subsystem; null if it could not be read.
    `windows` has each region (BAR) whose size can be chosen: the number, the size in bytes, and the
    largest size."""

    route: tuple[str, ...] = ()
    subsystem: int | None = None
    windows: tuple[tuple[int, int, int], ...] = ()

    @property
    def is_known(self) -> bool:
        """Whether the function's files in sysfs could be read."""
        return self.class_code is not None


class Virtual(msgspec.Struct, frozen=True, kw_only=True):
    """The facts of a guest or its host. `siblings` are the CPUs of each CPU's core. `node_pages`
    counts huge pages (total, free) by node and by size in bytes. `functions` is null if PCI cannot
    be read. `crash_kernel` is the memory in bytes that is reserved for a crash kernel. `signs` are
    sentences that show whether this is a guest or a host. `kvm` is the loaded module by which KVM
    uses this processor; null without one."""

    siblings: dict[int, Cpus] = {}
    node_pages: dict[int, dict[int, tuple[int, int]]] = {}
    functions: tuple[BusFunction, ...] | None = None
    crash_kernel: int = 0
    signs: tuple[str, ...] = ()
    kvm: str | None = None


class RunningDomain(msgspec.Struct, frozen=True, kw_only=True):
    """A running virtual machine, with the CPUs that each of its threads may use. Control groups
    have these facts. `name` is libvirt's name, shortened and without special characters. `nodes`
    are the NUMA nodes that the memory may come from."""

    name: str
    vcpus: dict[int, Cpus] = {}
    emulator: Cpus | None = None
    iothreads: dict[int, Cpus] = {}
    nodes: Cpus | None = None

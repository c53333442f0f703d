"""What a hypervisor provides to a guest, and where on a host a guest may be placed."""

from __future__ import annotations

import msgspec

from .inventory import PciFunction

Cpus = tuple[int, ...]


class BusFunction(PciFunction, frozen=True, kw_only=True):
    """`route` leads from the root bus down to it; `subsystem` is the vendor's number; `windows` are
    the regions (BARs) whose size can be chosen: number, size in bytes, and largest size."""

    route: tuple[str, ...] = ()
    subsystem: int | None = None
    windows: tuple[tuple[int, int, int], ...] = ()

    @property
    def is_known(self) -> bool:
        """Whether the function's files in sysfs could be read."""
        return self.class_code is not None


class Virtual(msgspec.Struct, frozen=True, kw_only=True):
    """`siblings` are the CPUs of each CPU's core. `node_pages` has huge pages (total, free) by node
    and size. `functions` is null if PCI cannot be read. `crash_kernel` is in bytes. `signs` tell a
    guest from a host. `kvm` is the loaded module."""

    siblings: dict[int, Cpus] = {}
    node_pages: dict[int, dict[int, tuple[int, int]]] = {}
    functions: tuple[BusFunction, ...] | None = None
    crash_kernel: int = 0
    signs: tuple[str, ...] = ()
    kvm: str | None = None


class RunningDomain(msgspec.Struct, frozen=True, kw_only=True):
    """A running virtual machine, by its control groups: the CPUs of its threads, and its memory's
    nodes. `name` is libvirt's, shortened and without special characters."""

    name: str
    vcpus: dict[int, Cpus] = {}
    emulator: Cpus | None = None
    iothreads: dict[int, Cpus] = {}
    nodes: Cpus | None = None

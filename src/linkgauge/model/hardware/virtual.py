"""What a hypervisor provides to its guests, and where on a host a guest may be placed."""

from __future__ import annotations

import msgspec

from .inventory import PciFunction

Cpus = tuple[int, ...]


class BusFunction(PciFunction, frozen=True, kw_only=True):
    """A PCI function. `route` has the addresses from the topmost bridge to it, and `windows` each
    resizable BAR's number, size and largest size in bytes."""

    route: tuple[str, ...] = ()
    subsystem: int | None = None
    windows: tuple[tuple[int, int, int], ...] = ()

    @property
    def is_known(self) -> bool:
        return self.class_code is not None


class Virtual(msgspec.Struct, frozen=True, kw_only=True):
    """Facts about virtualization. `siblings` has the CPUs of each CPU's core, `node_pages` the
    total and free huge pages of each node by page size. Page sizes and `crash_kernel` are bytes."""

    siblings: dict[int, Cpus] = {}
    node_pages: dict[int, dict[int, tuple[int, int]]] = {}
    functions: tuple[BusFunction, ...] | None = None
    crash_kernel: int = 0
    signs: tuple[str, ...] = ()
    kvm: str | None = None


class RunningDomain(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    vcpus: dict[int, Cpus] = {}
    emulator: Cpus | None = None
    iothreads: dict[int, Cpus] = {}
    nodes: Cpus | None = None

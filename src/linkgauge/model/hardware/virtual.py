"""What is read of a machine to compare it with a domain, beside its inventory: of a guest, what the
hypervisor made for it; of a host, where a domain may be placed."""

from __future__ import annotations

import msgspec

from .inventory import PciFunction

Cpus = tuple[int, ...]


class BusFunction(PciFunction, frozen=True, kw_only=True):
    """Any PCI function. `route` has the addresses from its root bus down to itself (none: unknown),
    `subsystem` is the subsystem's vendor; null is what could not be read. `windows` has each
    region (BAR) whose size can be chosen: its number, its bytes, and the most."""

    route: tuple[str, ...] = ()
    subsystem: int | None = None
    windows: tuple[tuple[int, int, int], ...] = ()

    @property
    def is_known(self) -> bool:
        """Whether its files could be read at all."""
        return self.class_code is not None


class Virtual(msgspec.Struct, frozen=True, kw_only=True):
    """`siblings` are the CPUs of each CPU's core; `node_pages` counts huge pages (total, free) by
    node and by size in bytes; `crash_kernel` is what the kernel sets aside for another one, bytes;
    `signs` tell a guest from a host, in words. `functions` is null where PCI cannot be read. `kvm`
    is the loaded module by which KVM uses this processor; null: none is seen."""

    siblings: dict[int, Cpus] = {}
    node_pages: dict[int, dict[int, tuple[int, int]]] = {}
    functions: tuple[BusFunction, ...] | None = None
    crash_kernel: int = 0
    signs: tuple[str, ...] = ()
    kvm: str | None = None


class RunningDomain(msgspec.Struct, frozen=True, kw_only=True):
    """A domain that runs: where its threads may run, as its control groups have it. `name` is
    libvirt's, shortened and without special characters; `nodes` is where its memory may come
    from."""

    name: str
    vcpus: dict[int, Cpus] = {}
    emulator: Cpus | None = None
    iothreads: dict[int, Cpus] = {}
    nodes: Cpus | None = None

"""What is known of a machine beyond what is measured: plain values, read by machine/ and the
backends' libraries, judged by judge/. Null is what could not be read; `unknown` says why.

Rates are bytes/s of one direction, transfer rates GT/s as PCIe names them, sizes bytes, clocks Hz.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

import msgspec

from .map import Routing

PortType = Literal[
    "endpoint", "root port", "upstream port", "downstream port", "bridge", "integrated endpoint"
]


NEEDS_ROOT = "run as root"
"""Ends a reason if root could read the value."""


class Gap(msgspec.Struct, frozen=True):
    """Fields that could not be read (none: all of them), and why. Inventories list gaps as texts,
    `FIELD, FIELD: WHY`."""

    fields: tuple[str, ...]
    why: str


def gaps_of(unknown: Iterable[str]) -> list[Gap]:
    """The gaps listed in an inventory's `unknown`."""
    split = [text.partition(": ") for text in unknown]
    return [Gap(tuple(what.split(", ")), why) if why else Gap((), what) for what, _, why in split]


class PciLink(msgspec.Struct, frozen=True):
    """The link above a function (for a port: below it). Speeds are GT/s, widths lanes; `target` is
    the speed set in Link Control 2."""

    speed: float | None = None
    width: int | None = None
    max_speed: float | None = None
    max_width: int | None = None
    target: float | None = None


class PciFunction(msgspec.Struct, frozen=True, kw_only=True):
    """A PCI function: an accelerator, a network adapter, or a bridge above one.

    `address` is as sysfs writes it (0000:1b:00.0; domains may have more digits), `class_code` has
    24 bits, `name` comes from the PCI ID database if the machine has one. `parent` is the bridge
    above, null at the root. `acs` are the redirections that Access Control Services have enabled at
    this port (null: no capability or not readable), `errors` the totals of its AER counters by
    severity. `silent`: its whole configuration space reads as ones, as if the device were gone.
    `unknown` says what could not be read, and why.
    """

    address: str
    vendor: int | None = None
    device: int | None = None
    class_code: int | None = None
    revision: int | None = None
    name: str | None = None
    driver: str | None = None
    numa_node: int | None = None
    iommu_group: int | None = None
    port: PortType | None = None
    parent: str | None = None
    link: PciLink = PciLink()
    max_payload: int | None = None
    max_payload_supported: int | None = None
    max_read_request: int | None = None
    acs: tuple[str, ...] | None = None
    errors: dict[str, int] | None = None
    display: bool = False
    silent: bool = False
    unknown: tuple[str, ...] = ()


_ACCELERATORS = (0x03, 0x0B, 0x12)
"""PCI base classes: display (GPUs), processors, processing accelerators."""


def is_accelerator(function: PciFunction) -> bool:
    """Whether it may compute, and is no display that the host shows itself on."""
    computes = function.class_code is not None and function.class_code >> 16 in _ACCELERATORS
    return computes and not function.display


class FabricLink(msgspec.Struct, frozen=True):
    """A link of an accelerator's own fabric (NVLink and the like). `remote` is the memory's
    notation, a switch's name, or null if the library does not report it; `rate` the signalling rate
    of one direction, `errors` the sum of its counters."""

    index: int
    kind: str
    active: bool | None
    version: str | None = None
    rate: float | None = None
    remote: str | None = None
    errors: int | None = None


class SwitchLink(msgspec.Struct, frozen=True):
    """A link between two switches, by name, as the manager of their fabric reports it: `rate` is
    the signalling rate of one direction, all `count` parallel links together."""

    a: str
    b: str
    kind: str
    count: int = 1
    rate: float | None = None


class Accelerator(msgspec.Struct, frozen=True, kw_only=True):
    """An accelerator as its vendor's library describes it (NVML), in addition to its backend.

    `memory` is its notation, `link` its PCIe link. `board` is the board's part number,
    `form_factor` SXM, PCIe or the like. `fabric_cluster` is the UUID of a domain of links that
    spans hosts, `fabric_clique` the part of it that the device belongs to. `memory_clock` is the
    highest, `memory_bus` is bits, `memory_rate` the peak of its own memory (null where neither
    clock nor bus is known): two transfers a clock.
    `throttled` are the reasons in force, in words; `processes` the process ids of others on it;
    `utilization` is the share of the last moments in which it worked.
    `isa` is its instruction set (gfx942, of AMD's), `built_for` those that its backend's library
    has kernels for, and `runtime` the platform that this was made with (ROCm 7.1).
    """

    memory: str
    model: str
    pci: str | None = None
    uuid: str | None = None
    driver: str | None = None
    library: str | None = None
    firmware: str | None = None
    board: str | None = None
    form_factor: str | None = None
    link: PciLink = PciLink()
    links: tuple[FabricLink, ...] = ()
    memory_clock: float | None = None
    memory_bus: int | None = None
    memory_rate: float | None = None
    clock: float | None = None
    max_clock: float | None = None
    locked_clock: float | None = None
    throttled: tuple[str, ...] = ()
    temperature: float | None = None
    power: float | None = None
    power_limit: float | None = None
    pcie_replays: int | None = None
    ecc: bool | None = None
    ecc_errors: int | None = None
    remap_pending: bool | None = None
    mig: bool | None = None
    persistence: bool | None = None
    compute_mode: str | None = None
    fabric_state: str | None = None
    fabric_clique: int | None = None
    fabric_cluster: str | None = None
    bar1_bytes: int | None = None
    isa: str | None = None
    runtime: str | None = None
    built_for: tuple[str, ...] | None = None
    processes: tuple[int, ...] | None = None
    utilization: float | None = None
    unknown: tuple[str, ...] = ()


class Adapter(msgspec.Struct, frozen=True, kw_only=True):
    """A network adapter with RDMA: `rate` of its port as sysfs reports it, bytes/s."""

    name: str
    pci: str | None = None
    state: str | None = None
    rate: float | None = None
    link_layer: str | None = None
    unknown: tuple[str, ...] = ()


class Interface(msgspec.Struct, frozen=True, kw_only=True):
    """A network interface, `nic:N` by its place in the inventory: whether it is `up` (null:
    unknown), what `kind` of hardware it is (null: another one), its IP addresses, its driver, the
    rate of its link in bytes/s, the NUMA node and the PCI function of its device, the device with
    RDMA that belongs to it, and the `steps` over PCI from the GPU of its rank to it; null where
    there is none, or it is unknown."""

    name: str
    up: bool | None = None
    kind: str | None = None
    addresses: tuple[str, ...] = ()
    driver: str | None = None
    speed: float | None = None
    node: int | None = None
    pci: str | None = None
    rdma: str | None = None
    steps: int | None = None

    @property
    def is_loopback(self) -> bool:
        return self.kind == "loopback"


class Cache(msgspec.Struct, frozen=True):
    """One level of cache: bytes of one, and how many CPUs share it."""

    level: int
    kind: str
    size: int
    shared_by: int


UNREACHABLE = 255
"""The distance of a node whose memory cannot be reached (ACPI 6.5, 5.2.17, the SLIT)."""


class HostDetails(msgspec.Struct, frozen=True, kw_only=True):
    """What the kernel reports of the host beyond model.machine.Host.

    `cpu_vendor` is the processor's own word (x86 only). `distances` are the kernel's, by node,
    with a column for each node that has a row;
    `huge_pages` are (total, free) by page size in bytes.
    `hypervisor` and `container` name what the kernel runs under and what this process runs in.
    `allowed_cpus` and `allowed_nodes` are this process's, `memory_limit` its cgroup's.
    `governor` chooses the CPUs' frequency and `frequency_driver` sets it.
    `firmware` is the version of the BIOS and its date, `microcode` that of the CPUs (each that some
    have); null where the machine does not show them, as most virtual machines.
    `steal` is the share that a hypervisor took of all CPUs' time since boot, of `cpu_ticks` ticks:
    that of a span follows from both at its ends. Null limits are none where `unknown` says nothing.
    `memory_rate` is of the DIMMs, all channels (null where the firmware's tables are not readable).
    """

    cpu_vendor: str | None = None
    sockets: int | None = None
    cores: int | None = None
    threads_per_core: int | None = None
    isa: str | None = None
    caches: tuple[Cache, ...] = ()
    distances: dict[int, tuple[int, ...]] = {}
    node_cpus: dict[int, tuple[int, ...]] = {}
    huge_pages: dict[int, tuple[int, int]] = {}
    transparent_huge_pages: str | None = None
    governor: str | None = None
    frequency_driver: str | None = None
    firmware: str | None = None
    microcode: str | None = None
    command_line: str | None = None
    iommu: Literal["off", "passthrough", "translating"] | None = None
    hypervisor: str | None = None
    container: str | None = None
    allowed_cpus: tuple[int, ...] | None = None
    allowed_nodes: tuple[int, ...] | None = None
    memory_limit: int | None = None
    memlock_limit: int | None = None
    steal: float | None = None
    cpu_ticks: float | None = None
    memory_rate: float | None = None
    unknown: tuple[str, ...] = ()

    @property
    def apart(self) -> frozenset[tuple[int, int]]:
        """Nodes of which the first one's CPUs do not reach the memory of the second."""
        return frozenset(
            (node, other)
            for node, row in self.distances.items()
            for other, distance in zip(self.distances, row, strict=False)
            if distance == UNREACHABLE
        )


class Inventory(msgspec.Struct, frozen=True, kw_only=True):
    """Everything read of a machine at one time."""

    host: HostDetails = HostDetails()
    pci: tuple[PciFunction, ...] = ()
    accelerators: tuple[Accelerator, ...] = ()
    adapters: tuple[Adapter, ...] = ()
    interfaces: tuple[Interface, ...] = ()
    switch_links: tuple[SwitchLink, ...] = ()
    routing: Routing = "spread"
    """How switches choose among equally short ways, as the manager of their fabric reports it."""
    stated: dict[str, str] = {}
    """What a person stated in hardware.yml, which the machine cannot know."""
    unknown: tuple[str, ...] = ()


class Reading(msgspec.Struct, frozen=True, gc=False, kw_only=True, omit_defaults=True):
    """Readings of an accelerator while a cell was measured: `count` of them over `seconds`, first
    to last. The link's speed (GT/s) and width are the medians, `power_max` is watts,
    `throttled` all reasons seen,
    `pcie_replays` those that occurred meanwhile. A count of 0: its library reported nothing. In
    files, null values (0 s, no reasons) are left out."""

    memory: str
    count: int
    seconds: float = 0.0
    link_speed: float | None = None
    link_width: int | None = None
    clock_min: float | None = None
    clock_max: float | None = None
    temperature_max: float | None = None
    power_max: float | None = None
    throttled: tuple[str, ...] = ()
    pcie_replays: int | None = None


class Telemetry(msgspec.Struct, frozen=True, kw_only=True):
    """An accelerator at one moment: its PCIe link, the clock of its cores, its power in watts, what
    throttles it, and its counter of PCIe replays."""

    memory: str
    link_speed: float | None = None
    link_width: int | None = None
    clock: float | None = None
    temperature: float | None = None
    power: float | None = None
    throttled: tuple[str, ...] = ()
    pcie_replays: int | None = None

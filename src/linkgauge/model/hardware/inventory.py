"""The facts about a machine that are read, not measured. Rates are of one direction."""

from __future__ import annotations

from typing import Literal

import msgspec

from .. import shareable
from .gaps import AssumedFact, Assumption, Gap
from .host_details import HostDetails
from .map import Routing
from .network import InterfaceSetup
from .part import Part

PortType = Literal[
    "endpoint", "root port", "upstream port", "downstream port", "bridge", "integrated endpoint"
]


class PciLink(msgspec.Struct, frozen=True):
    """The PCIe link above a function or, if the function is a port, below it. Null: unknown.

    speed: The current speed, in GT/s per lane.
    width: The current width in lanes.
    max_speed: The highest speed that the function supports, in GT/s per lane.
    max_width: The largest width that the function supports, in lanes.
    target: The target speed set in Link Control 2, in GT/s per lane."""

    speed: float | None = None
    width: int | None = None
    max_speed: float | None = None
    max_width: int | None = None
    target: float | None = None


class PciFunction(msgspec.Struct, frozen=True, kw_only=True):
    """A PCI function: an accelerator, a network adapter, or a bridge above them. Null: unreadable.

    address: Its address as sysfs writes it (0000:1b:00.0; domains may have more digits).
    vendor: The vendor's number.
    device: The device's number.
    class_code: The class code, of 24 bits.
    revision: The revision's number.
    name: The name in the PCI ID database; null without a database or an entry.
    driver: The name of its driver; null without one.
    numa_node: The NUMA node that the firmware reports.
    iommu_group: The number of the IOMMU group; null also without a group.
    port: The kind of port or endpoint that the function is.
    parent: The address of the bridge above; null at the root.
    link: The function's link; for a virtual function, the link of its physical function.
    max_payload: The configured largest payload of a packet, in bytes.
    max_payload_supported: The largest payload of a packet that the function supports, in bytes.
    max_read_request: The configured largest read request, in bytes.
    relaxed_ordering: Whether its writes may overtake other writes; null also if not configured.
    aspm: The states in which the link may save power (`L0s`, `L1`); null also without any.
    acs: The redirections of Access Control Services at this port; null if none can be read.
    errors: The totals of its AER counters by severity (`correctable`, `nonfatal`, `fatal`).
    display: Whether the function is a display of the host itself.
    silent: Whether the whole configuration space reads as ones, as if the device were gone.
    unknown: What could not be read, and why."""

    address: shareable.PciAddress
    vendor: int | None = None
    device: int | None = None
    class_code: int | None = None
    revision: int | None = None
    name: shareable.Product | None = None
    driver: shareable.Word | None = None
    numa_node: int | None = None
    iommu_group: int | None = None
    port: PortType | None = None
    parent: shareable.PciAddress | None = None
    link: PciLink = PciLink()
    max_payload: int | None = None
    max_payload_supported: int | None = None
    max_read_request: int | None = None
    relaxed_ordering: bool | None = None
    aspm: tuple[shareable.Word, ...] | None = None
    acs: tuple[shareable.Word, ...] | None = None
    errors: dict[shareable.Word, int] | None = None
    display: bool = False
    silent: bool = False
    unknown: tuple[Gap, ...] = ()


class FabricLink(msgspec.Struct, frozen=True):
    """A link of an accelerator's own fabric (NVLink and the like).

    index: The link's number, from 0, among the links of the same kind.
    kind: The kind of link, such as `nvlink` or `c2c`.
    active: Whether the link is up; null if unknown.
    version: The version of the link; null if unknown.
    rate: The signalling rate of one direction in bytes/s; null if unknown.
    remote: The memory, device or switch at the other end; null if not reported.
    errors: The sum of the link's error counters; null if none can be read."""

    index: int
    kind: shareable.Word
    active: bool | None
    version: shareable.Version | None = None
    rate: float | None = None
    remote: shareable.PlaceName | None = None
    errors: int | None = None


class SwitchLink(msgspec.Struct, frozen=True):
    """A link between two switches, as the fabric manager reports it.

    a: The name of one switch.
    b: The name of the other switch.
    kind: The link's kind.
    count: The number of parallel links.
    rate: The signalling rate of all links in one direction, in bytes/s; null if unknown."""

    a: shareable.PlaceName
    b: shareable.PlaceName
    kind: shareable.Word
    count: int = 1
    rate: float | None = None


class Accelerator(msgspec.Struct, frozen=True, kw_only=True):
    """An accelerator as its vendor's library (such as NVML) describes it. Null: not readable.

    memory: The name of its memory, such as `cuda:0`.
    model: The hardware's name.
    pci: Its PCI address as sysfs writes it.
    uuid: The vendor's unique name of the accelerator.
    driver: The version of its driver.
    library: The version of its vendor's library; `simulated` on a simulated machine.
    firmware: The version of its firmware (VBIOS).
    board: The board's part number.
    form_factor: The form factor, such as SXM or PCIe.
    link: Its PCIe link.
    links: The links of its own fabric.
    memory_clock: The highest clock of its memory in Hz.
    memory_bus: The width of its memory's bus in bits.
    memory_rate: Its memory's peak rate in bytes/s: clock × bytes of the bus × 2 transfers (AMD: 2
      to 16).
    clock: The clock of its cores in Hz at the moment of reading.
    max_clock: The highest clock of its cores in Hz.
    cores: The number of its cores for single precision.
    capability: Its compute capability, such as 9.0 (NVIDIA only).
    locked_clock: The application clock (no locked clock) in Hz; null also if none is set.
    throttled: The reasons that hold its clocks down at the moment of reading.
    temperature: Its temperature in °C.
    power: The power that it draws in watts.
    power_limit: The current power limit in watts.
    power_default: The default power limit of the board in watts.
    pcie_replays: Its counter of PCIe replays.
    ecc: Whether its memory has error correction switched on.
    ecc_errors: The number of memory errors that were not corrected.
    remap_pending: Whether memory rows will be remapped at the next reset.
    mig: Whether it is in MIG mode.
    persistence: Whether it is in persistence mode.
    compute_mode: How many processes may compute on it: `default`, `exclusive process` and so on.
    fabric_state: The state of its registration with the switches by the fabric manager.
    fabric_clique: The number of its clique, which is a part of the fabric's domain.
    fabric_cluster: The UUID of the fabric's domain, which may span hosts.
    bar1_bytes: Size of its BAR1 in bytes.
    isa: Its instruction set, such as gfx942 (AMD only).
    runtime: The platform that the backend's library was built for, such as ROCm 7.1.
    built_for: The instruction sets that the backend's library has kernels for.
    processes: The ids of other processes that have it open.
    process_use: The share of recent time in which each of `processes` used it; null if not counted.
    utilization: The share of recent time in which it was busy, from 0 to 1.
    unknown: What could not be read, and why."""

    memory: shareable.MemoryName
    model: shareable.Product
    pci: shareable.PciAddress | None = None
    uuid: shareable.Identity | None = None
    driver: shareable.Version | None = None
    library: shareable.Version | None = None
    firmware: shareable.Version | None = None
    board: shareable.Version | None = None
    form_factor: shareable.Word | None = None
    link: PciLink = PciLink()
    links: tuple[FabricLink, ...] = ()
    memory_clock: float | None = None
    memory_bus: int | None = None
    memory_rate: float | None = None
    clock: float | None = None
    max_clock: float | None = None
    cores: int | None = None
    capability: shareable.Version | None = None
    locked_clock: float | None = None
    throttled: tuple[shareable.Word, ...] = ()
    temperature: float | None = None
    power: float | None = None
    power_limit: float | None = None
    power_default: float | None = None
    pcie_replays: int | None = None
    ecc: bool | None = None
    ecc_errors: int | None = None
    remap_pending: bool | None = None
    mig: bool | None = None
    persistence: bool | None = None
    compute_mode: shareable.Word | None = None
    fabric_state: shareable.Word | None = None
    fabric_clique: int | None = None
    fabric_cluster: shareable.Identity | None = None
    bar1_bytes: int | None = None
    isa: shareable.Word | None = None
    runtime: shareable.Version | None = None
    built_for: tuple[shareable.Word, ...] | None = None
    processes: tuple[int, ...] | None = None
    process_use: tuple[float, ...] | None = None
    utilization: float | None = None
    unknown: tuple[Gap, ...] = ()

    @property
    def part(self) -> Part:
        return Part.device(self.memory)


class Adapter(msgspec.Struct, frozen=True, kw_only=True):
    """One port of a network adapter with RDMA.

    name: The adapter's name, with the port's number if the device has several ports.
    pci: The PCI address; null if there is none, or if unknown.
    state: The state of its port, such as `active`; null if unknown.
    rate: The rate of its port in bytes/s, as sysfs reports it; null if unknown.
    link_layer: `InfiniBand` or `Ethernet`; null if unknown.
    leads_to: The switch or adapter at the other end of the port's cable; null if unknown.
    unknown: What could not be read, and why."""

    name: shareable.InterfaceName
    pci: shareable.PciAddress | None = None
    state: shareable.Word | None = None
    rate: float | None = None
    link_layer: shareable.Word | None = None
    leads_to: shareable.PlaceName | None = None
    unknown: tuple[Gap, ...] = ()

    @property
    def device(self) -> str:
        return self.name if self.name == self.pci else self.name.partition(":")[0]


class Interface(msgspec.Struct, frozen=True, kw_only=True):
    """A network interface, named `nic:N` by its index in the inventory. Null: unknown or absent.

    name: Its name.
    up: Whether it is up.
    kind: The kind of hardware: Ethernet, InfiniBand or loopback; null also for others.
    addresses: Its IP addresses.
    driver: The name of its driver.
    speed: The rate of its link in bytes/s.
    mtu: The largest packet in bytes.
    node: The NUMA node of its device.
    pci: The PCI address of its device.
    rdma: The name of its RDMA device.
    steps: The number of PCI hops to the GPU that its rank measures with.
    setup: How it is set up; null for interfaces without a device."""

    name: shareable.InterfaceName
    up: bool | None = None
    kind: shareable.Word | None = None
    addresses: tuple[shareable.IpAddress, ...] = ()
    driver: shareable.Word | None = None
    speed: float | None = None
    mtu: int | None = None
    node: int | None = None
    pci: shareable.PciAddress | None = None
    rdma: shareable.InterfaceName | None = None
    steps: int | None = None
    setup: InterfaceSetup | None = None

    @property
    def is_loopback(self) -> bool:
        return self.kind == "loopback"


class Inventory(msgspec.Struct, frozen=True, kw_only=True):
    """All facts that were read of a machine at one moment.

    host: What the kernel reports of the host.
    pci: The PCI functions: accelerators, network adapters with RDMA, and the bridges above them.
    accelerators: The accelerators, as their vendors' libraries report them.
    adapters: The network adapters with RDMA.
    interfaces: The network interfaces.
    switch_links: The links between switches, if a fabric manager reports them.
    routing: How switches choose among equally short paths, as the fabric manager reports.
    stated: What a person states in hardware.yml, beyond what the machine reports.
    assumed: Facts that are assumed, because the machine's description does not state them.
    unknown: What could not be read, and why."""

    host: HostDetails = HostDetails()
    pci: tuple[PciFunction, ...] = ()
    accelerators: tuple[Accelerator, ...] = ()
    adapters: tuple[Adapter, ...] = ()
    interfaces: tuple[Interface, ...] = ()
    switch_links: tuple[SwitchLink, ...] = ()
    routing: Routing = "spread"
    stated: dict[shareable.StatedKey, shareable.StatedValue] = {}
    assumed: tuple[Assumption, ...] = ()
    unknown: tuple[Gap, ...] = ()

    def assumed_of(self, fact: AssumedFact, part: str) -> str | None:
        found = (one.value for one in self.assumed if one.fact == fact and part in one.parts)
        return next(found, None)


class Reading(msgspec.Struct, frozen=True, gc=False, kw_only=True, omit_defaults=True):
    """The readings of an accelerator while a cell was measured. Files leave out empty values.

    memory: The name of its memory, such as `cuda:0`.
    count: The number of readings; 0 if the library reported nothing.
    seconds: Seconds from the first to the last reading.
    link_speed: The median speed of its PCIe link in GT/s per lane; null if unknown.
    link_width: The median width of its PCIe link in lanes; null if unknown.
    clock_min: The lowest clock of its cores in Hz; null if unknown.
    clock_max: The highest clock of its cores in Hz; null if unknown.
    temperature_max: The highest temperature in °C; null if unknown.
    power_max: The highest power in watts; null if unknown.
    throttled: All reasons that held its clocks down during the readings.
    pcie_replays: PCIe replays from the first to the last reading; null if unknown or read once."""

    memory: shareable.MemoryName
    count: int
    seconds: float = 0.0
    link_speed: float | None = None
    link_width: int | None = None
    clock_min: float | None = None
    clock_max: float | None = None
    temperature_max: float | None = None
    power_max: float | None = None
    throttled: tuple[shareable.Word, ...] = ()
    pcie_replays: int | None = None


class Telemetry(msgspec.Struct, frozen=True, kw_only=True):
    """The state of an accelerator at one moment. `link_speed` is in GT/s per lane, `link_width` in
    lanes, `clock` in Hz, `temperature` in °C, `power` in watts. None: not reported."""

    memory: str
    link_speed: float | None = None
    link_width: int | None = None
    clock: float | None = None
    temperature: float | None = None
    power: float | None = None
    throttled: tuple[str, ...] = ()
    pcie_replays: int | None = None

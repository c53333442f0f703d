"""Facts of a machine beyond the measured ones: plain values, read by machine/ and the backends'
libraries, judged by judge/. Null is a value that could not be read; `unknown` says why.

Rates are bytes/s of one direction, transfer rates GT/s as PCIe names them, sizes bytes, clocks
Hz."""

from __future__ import annotations

from typing import Literal

import msgspec

from .gaps import Gap
from .host_details import HostDetails
from .map import Routing
from .part import Part

PortType = Literal[
    "endpoint", "root port", "upstream port", "downstream port", "bridge", "integrated endpoint"
]


class PciLink(msgspec.Struct, frozen=True):
    """The link above a function (for a port: below it). Null is unknown.

    speed: Its speed, in GT/s of a lane.
    width: Its width in lanes.
    max_speed: The highest speed of the function, in GT/s of a lane.
    max_width: The largest width of the function, in lanes.
    target: The speed set in Link Control 2, in GT/s of a lane.
    """

    speed: float | None = None
    width: int | None = None
    max_speed: float | None = None
    max_width: int | None = None
    target: float | None = None


class PciFunction(msgspec.Struct, frozen=True, kw_only=True):
    """A PCI function: an accelerator, a network adapter, or a bridge above one. Null is a value
    that could not be read.

    address: Its address as sysfs writes it (0000:1b:00.0; domains may have more digits).
    vendor: The vendor's number.
    device: The device's number.
    class_code: The class code, of 24 bits.
    revision: The revision's number.
    name: Its name in the PCI ID database; null if the machine has none, or it is not in there.
    driver: The name of its driver; null without one.
    numa_node: The NUMA node that the firmware names.
    iommu_group: The number of its IOMMU group; null also if it is in none.
    port: What kind of port it is.
    parent: The address of the bridge above; null at the root.
    link: Its link; of a virtual function, that of its physical one.
    max_payload: The largest payload of a packet that is set, in bytes.
    max_payload_supported: The largest payload of a packet that it supports, in bytes.
    max_read_request: The largest read request that is set, in bytes.
    relaxed_ordering: Whether its writes may pass others; null also of one that nobody set up.
    aspm: The states in which its link may save power (`L0s`, `L1`); null also if in none.
    acs: The redirections that Access Control Services have enabled at this port; null: no
        capability, or not readable.
    errors: The totals of its AER counters by severity (`correctable`, `nonfatal`, `fatal`); null:
        not counted, or not readable.
    display: Whether it is a display that the host shows itself on.
    silent: Whether its whole configuration space reads as ones, as if the device were gone.
    unknown: What could not be read, and why."""

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
    relaxed_ordering: bool | None = None
    aspm: tuple[str, ...] | None = None
    acs: tuple[str, ...] | None = None
    errors: dict[str, int] | None = None
    display: bool = False
    silent: bool = False
    unknown: tuple[Gap, ...] = ()


_ACCELERATORS = (0x03, 0x0B, 0x12)
"""PCI base classes: display (GPUs), processors, processing accelerators."""


def is_accelerator(function: PciFunction) -> bool:
    """Whether the function may compute, and is no display that the host shows itself on."""
    computes = function.class_code is not None and function.class_code >> 16 in _ACCELERATORS
    return computes and not function.display


class FabricLink(msgspec.Struct, frozen=True):
    """A link of an accelerator's own fabric (NVLink and the like).

    index: The link's number, from 0, among those of its kind.
    kind: Its kind: `nvlink`, `c2c` and the like.
    active: Whether it is up; null if unknown.
    version: Its version; null if unknown.
    rate: The signalling rate of one direction in bytes/s; null if unknown.
    remote: The other end: a memory's notation, or another device's or switch's name; null if the
        library does not report it.
    errors: The sum of its error counters; null if none can be read."""

    index: int
    kind: str
    active: bool | None
    version: str | None = None
    rate: float | None = None
    remote: str | None = None
    errors: int | None = None


class SwitchLink(msgspec.Struct, frozen=True):
    """A link between two switches, as the manager of their fabric reports it.

    a: The name of one switch.
    b: The name of the other one.
    kind: The link's kind.
    count: The number of parallel links.
    rate: The signalling rate of one direction in bytes/s, all parallel links together; null if
        unknown.
    """

    a: str
    b: str
    kind: str
    count: int = 1
    rate: float | None = None


class Accelerator(msgspec.Struct, frozen=True, kw_only=True):
    """An accelerator as its vendor's library describes it (NVML), in addition to its backend. Null
    is a value that could not be read.

    memory: Its memory, in the notation.
    model: The hardware's name.
    pci: Its PCI address as sysfs writes it.
    uuid: Its vendor's name for it.
    driver: The version of its driver.
    library: The version of its vendor's library; `simulated` on a simulated machine.
    firmware: The version of its firmware (VBIOS).
    board: The board's part number.
    form_factor: SXM, PCIe or the like.
    link: Its PCIe link.
    links: The links of its own fabric.
    memory_clock: The highest clock of its memory in Hz.
    memory_bus: The width of its memory's bus in bits.
    memory_rate: The peak rate of its own memory in bytes/s: two transfers a clock, of AMD's two to
        16 by generation; null also where clock, bus or generation is not known.
    clock: The clock of its cores in Hz at that moment.
    max_clock: The highest clock of its cores in Hz.
    cores: The number of its cores for single precision.
    capability: Its compute capability (9.0, of NVIDIA's).
    locked_clock: The application clock in Hz that somebody set; null also if none is set.
    throttled: The reasons that hold its clocks down at that moment.
    temperature: Its temperature in °C.
    power: The power that it draws in watts.
    power_limit: The limit of its power in watts.
    power_default: The limit of its power that its board has by default, in watts.
    pcie_replays: Its counter of PCIe replays.
    ecc: Whether its memory has error correction switched on.
    ecc_errors: Errors of its memory that were not corrected.
    remap_pending: Whether rows of its memory wait for being replaced at the next reset.
    mig: Whether it is in MIG mode.
    persistence: Whether it is in persistence mode.
    compute_mode: How many processes may compute on it: `default`, `exclusive process` and so on.
    fabric_state: How far the fabric's manager has registered it with the switches.
    fabric_clique: The part of its fabric's domain that it belongs to.
    fabric_cluster: The UUID of its fabric's domain, which may span hosts.
    bar1_bytes: Size of its BAR1 in bytes.
    isa: Its instruction set (gfx942, of AMD's).
    runtime: The platform that its backend's library was built for (ROCm 7.1).
    built_for: The instruction sets that its backend's library has kernels for.
    processes: The ids of other processes that use it.
    utilization: The share of the last moments in which it worked, from 0 to 1.
    unknown: What could not be read, and why."""

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
    cores: int | None = None
    capability: str | None = None
    locked_clock: float | None = None
    throttled: tuple[str, ...] = ()
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
    unknown: tuple[Gap, ...] = ()

    @property
    def part(self) -> Part:
        return Part.device(self.memory)


class Adapter(msgspec.Struct, frozen=True, kw_only=True):
    """One port of a network adapter with RDMA.

    name: Its name; with the port's number where a device has several.
    pci: Its PCI address; null if it has none, or it is unknown.
    state: The state of its port, such as `active`; null if unknown.
    rate: The rate of its port in bytes/s, as sysfs reports it; null if unknown.
    link_layer: `InfiniBand` or `Ethernet`; null if unknown.
    unknown: What could not be read, and why."""

    name: str
    pci: str | None = None
    state: str | None = None
    rate: float | None = None
    link_layer: str | None = None
    unknown: tuple[Gap, ...] = ()


class Interface(msgspec.Struct, frozen=True, kw_only=True):
    """A network interface, `nic:N` by its place in the inventory. Null is a value that does not
    exist or is unknown.

    name: Its name.
    up: Whether it is up.
    kind: What kind of hardware it is: Ethernet, InfiniBand or loopback; null also of another one.
    addresses: Its IP addresses.
    driver: The name of its driver.
    speed: The rate of its link in bytes/s.
    mtu: The most bytes of a packet on it.
    node: The NUMA node of its device.
    pci: The PCI address of its device.
    rdma: The device with RDMA that belongs to it.
    steps: The steps over PCI from the GPU of its rank to it."""

    name: str
    up: bool | None = None
    kind: str | None = None
    addresses: tuple[str, ...] = ()
    driver: str | None = None
    speed: float | None = None
    mtu: int | None = None
    node: int | None = None
    pci: str | None = None
    rdma: str | None = None
    steps: int | None = None

    @property
    def is_loopback(self) -> bool:
        return self.kind == "loopback"


class Inventory(msgspec.Struct, frozen=True, kw_only=True):
    """All facts that were read of a machine at one time.

    host: What the kernel reports of the host.
    pci: PCI functions: accelerators, network adapters with RDMA, and the bridges above them.
    accelerators: What their vendors' libraries report of accelerators.
    adapters: The network adapters with RDMA.
    interfaces: The network interfaces.
    switch_links: The links between switches, if a fabric's manager reports them.
    routing: How switches choose among equally short ways, as the manager of their fabric reports
        it.
    stated: What a person stated in hardware.yml, which the machine cannot know.
    unknown: What could not be read, and why."""

    host: HostDetails = HostDetails()
    pci: tuple[PciFunction, ...] = ()
    accelerators: tuple[Accelerator, ...] = ()
    adapters: tuple[Adapter, ...] = ()
    interfaces: tuple[Interface, ...] = ()
    switch_links: tuple[SwitchLink, ...] = ()
    routing: Routing = "spread"
    stated: dict[str, str] = {}
    unknown: tuple[Gap, ...] = ()


class Reading(msgspec.Struct, frozen=True, gc=False, kw_only=True, omit_defaults=True):
    """Readings of an accelerator while a cell was measured. In files, null values (0 s, no reasons)
    are left out.

    memory: Its memory, in the notation.
    count: The number of readings; 0: its library reported nothing.
    seconds: Seconds from the first to the last.
    link_speed: The median speed of its PCIe link in GT/s of a lane; null if unknown.
    link_width: The median width of its PCIe link in lanes; null if unknown.
    clock_min: The lowest clock of its cores in Hz; null if unknown.
    clock_max: The highest clock of its cores in Hz; null if unknown.
    temperature_max: The highest temperature in °C; null if unknown.
    power_max: The highest power in watts; null if unknown.
    throttled: All reasons that held its clocks down.
    pcie_replays: PCIe replays that occurred meanwhile; null if unknown, or of a single reading.
    """

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
    """The state of an accelerator at one moment: its PCIe link, the clock of its cores, its power
    in watts, the reasons that throttle it, and its counter of PCIe replays."""

    memory: str
    link_speed: float | None = None
    link_width: int | None = None
    clock: float | None = None
    temperature: float | None = None
    power: float | None = None
    throttled: tuple[str, ...] = ()
    pcie_replays: int | None = None


# What a machine's devices report at one moment, beside no measurement: states and counters.
#
# Rates are bytes/s of one direction, clocks Hz. Null is what a library does not report.


class LinkTraffic(msgspec.Struct, frozen=True):
    """The payload bytes, `sent` and `received`, of a link of an accelerator's fabric since its
    driver was loaded."""

    index: int
    kind: str
    sent: int | None = None
    received: int | None = None


class LiveDevice(msgspec.Struct, frozen=True, kw_only=True):
    """An accelerator now. `number` is its place in its library's list, as `nvidia-smi` counts them;
    `up` is whether the library reaches it. `pcie_sent` and `pcie_received` are the device's rates
    over PCIe at this moment, `ecc_corrected` the errors corrected since its driver was loaded."""

    number: int
    accelerator: Accelerator
    up: bool = True
    clock_memory: float | None = None
    pcie_sent: float | None = None
    pcie_received: float | None = None
    ecc_corrected: int | None = None
    traffic: tuple[LinkTraffic, ...] = ()


class InventoryReading(msgspec.Struct, frozen=True):
    """The PCI functions and devices that one reading found."""

    functions: tuple[PciFunction, ...] = ()
    devices: tuple[LiveDevice, ...] = ()

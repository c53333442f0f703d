"""Represents a libvirt domain. Sizes are in bytes. libvirt numbers vCPUs and cells (the guest's
nodes); the host numbers CPUs and nodes. None means that libvirt chooses a value."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Literal

import msgspec

from linkgauge.model.errors import InputError
from linkgauge.model.hardware.virtual import Cpus


class CpuTopology(msgspec.Struct, frozen=True):
    """A guest's topology. QEMU numbers vCPUs by socket, die, cluster, core, then thread."""

    sockets: int = 1
    dies: int = 1
    clusters: int = 1
    cores: int = 1
    threads: int = 1

    @property
    def vcpus(self) -> int:
        return self.cores_of_socket * self.sockets * self.threads

    @property
    def shown(self) -> dict[str, int]:
        counts = {name: getattr(self, name) for name in self.__struct_fields__}
        return {name: n for name, n in counts.items() if n > 1 or name not in ("dies", "clusters")}

    def __str__(self) -> str:
        return f"<topology {' '.join(f'{name}={str(n)!r}' for name, n in self.shown.items())}/>"

    @property
    def cores_of_socket(self) -> int:
        return self.dies * self.clusters * self.cores

    def of(self, vcpus: Iterable[int]) -> tuple[int, int, int]:
        """Returns the numbers of sockets, cores, and threads per core that hold these vCPUs."""
        cores = Counter(vcpu // self.threads for vcpu in vcpus)
        sockets = {core // self.cores_of_socket for core in cores}
        return len(sockets), len(cores), max(cores.values(), default=0)

    def across(self, cells: Sequence[GuestNode]) -> tuple[str, range] | None:
        """Returns the smallest part that spans cells, as kind (`core`) and vCPUs, or None."""
        home = {vcpu: cell.index for cell in cells for vcpu in cell.vcpus}
        cluster = self.threads * self.cores
        sizes = {cluster: "cluster", cluster * self.clusters: "die"}
        sizes |= {cluster * self.clusters * self.dies: "socket", self.threads: "core"}
        for size in sorted(sizes):
            for first in range(0, self.vcpus, size):
                part = range(first, first + size)
                if len({home[vcpu] for vcpu in part if vcpu in home}) > 1:
                    return sizes[size], part
        return None

    def suits(self, cells: Sequence[GuestNode]) -> bool:
        """Whether no part, such as a core, has vCPUs of several cells. False, too, if each vCPU is
        a socket and there are more sockets than cells with vCPUs."""
        homes = sum(bool(cell.vcpus) for cell in cells) or 1
        return self.across(cells) is None and not self.vcpus == self.sockets > homes

    def fitted(self, cells: Sequence[GuestNode]) -> CpuTopology | None:
        """Returns the topology with the fewest sockets in which no socket spans several cells.
        Returns one socket if no topology fits, or None if a core spans cells."""
        cores, least = self.vcpus // self.threads, sum(bool(cell.vcpus) for cell in cells) or 1
        counts = (count for count in range(least, cores + 1) if cores % count == 0)
        made = (CpuTopology(sockets=n, cores=cores // n, threads=self.threads) for n in counts)
        whole = CpuTopology(cores=cores, threads=self.threads)
        part = whole.across(cells)
        if part is not None and part[0] == "core":
            return None
        return next((one for one in made if one.suits(cells)), whole)


class GuestNode(msgspec.Struct, frozen=True):
    index: int
    vcpus: Cpus = ()
    memory: int = 0
    distances: dict[int, int] = {}


class MemoryPolicy(msgspec.Struct, frozen=True):
    """How memory comes from the host's nodes. `nodes` is None if numad chooses them."""

    mode: str
    nodes: Cpus | None = None


class HugePages(msgspec.Struct, frozen=True):
    """Huge pages that back cells. `size` is None for the host's default size; `cells` is None for
    all cells that no other entry names."""

    size: int | None = None
    cells: Cpus | None = None


class BusAddress(msgspec.Struct, frozen=True):
    """A PCI address in the guest. `bus` is the index of a controller."""

    bus: int = 0
    slot: int = 0
    function: int = 0
    domain: int = 0


class Controller(msgspec.Struct, frozen=True):
    """A PCI controller. An expander adds a root bus, which has a number and belongs to a cell."""

    index: int
    model: str
    address: BusAddress | None = None
    bus_number: int | None = None
    cell: int | None = None

    @property
    def is_expander(self) -> bool:
        return self.model.endswith("expander-bus")


class HostDevice(msgspec.Struct, frozen=True):
    """A passed-through device: its address on the host (`source`, as in sysfs) and in the guest."""

    source: str
    guest: BusAddress | None = None
    managed: bool = False
    element: str = ""


class Domain(msgspec.Struct, frozen=True, kw_only=True):
    """A libvirt domain. `vcpus` is the largest number of vCPUs, `enabled` lists the vCPUs at the
    start. If `automatic`, numad chooses CPUs and nodes. `cpuset` has the CPUs of vCPUs without a
    pin. `memory` includes `added_memory`, the memory devices by cell. `current_memory` is the
    memory that a balloon leaves. `cpu` is a model or a mode (host-passthrough). `mediated` is the
    number of vGPUs. `mapped` names devices of Proxmox VE's mapping. `elements` has the XML that a
    placement changes. `refused` has the elements that libvirt refuses, with reasons."""

    name: str
    form: str = "libvirt"
    uuid: str | None = None
    kind: str = ""
    running: bool = False
    arch: str | None = None
    machine: str | None = None
    vcpus: int = 1
    enabled: Cpus = (0,)
    automatic: bool = False
    cpuset: Cpus | None = None
    vcpu_pins: dict[int, Cpus] = {}
    emulator_pin: Cpus | None = None
    iothreads: Cpus = ()
    iothread_pins: dict[int, Cpus] = {}
    memory: int | None = None
    current_memory: int | None = None
    added_memory: dict[int | None, int] = {}
    policy: MemoryPolicy | None = None
    cell_policies: dict[int, MemoryPolicy] = {}
    topology: CpuTopology | None = None
    cpu: str | None = None
    features: dict[str, str] = {}
    iommu: str | None = None
    iommu_caches: bool = False
    cells: tuple[GuestNode, ...] = ()
    huge_pages: tuple[HugePages, ...] = ()
    controllers: tuple[Controller, ...] = ()
    devices: tuple[HostDevice, ...] = ()
    mediated: int = 0
    mapped: tuple[str, ...] = ()
    elements: dict[str, str] = {}
    refused: tuple[tuple[str, str], ...] = ()

    @property
    def bytes(self) -> int | None:
        """Returns the memory of all cells and memory devices or, without cells, `memory`."""
        if not self.cells:
            return self.memory
        return sum(cell.memory for cell in self.cells) + sum(self.added_memory.values())

    def pin_of(self, vcpu: int) -> Cpus | None:
        """Returns the CPUs of a vCPU, or None if it may use all, or if numad chooses them."""
        return self.vcpu_pins.get(vcpu, None if self.automatic else self.cpuset)

    @property
    def other_pins(self) -> dict[str, Cpus | None]:
        threads = {f"IO thread {n}": self.iothread_pins.get(n) for n in self.iothreads}
        return {"emulator": self.emulator_pin, **threads}

    def hides_threads(self, vendor: str | None) -> bool:
        """Whether an AMD guest sees threads as cores, because its CPU lacks `topoext`."""
        # By default, only EPYC models and host-model have `topoext`.
        by_model = "require" if (self.cpu or "").startswith(("EPYC", "host-model")) else "disable"
        is_off = self.features.get("topoext", by_model) in ("disable", "forbid")
        is_x86 = self.kind != "qemu" and self.arch in (None, *X86)
        return vendor == "AuthenticAMD" and is_x86 and is_off

    def policy_of(self, cell: int) -> MemoryPolicy | None:
        return self.cell_policies.get(cell, self.policy)

    def cell_of(self, device: HostDevice) -> int | None:
        route = self.route_to(device)
        return None if route is None else route.cell

    def route_to(self, device: HostDevice) -> PciRoute | None:
        steps: list[tuple[int, int]] = []
        controllers = {controller.index: controller for controller in self.controllers}
        address = device.guest
        for _ in range(len(controllers) + 1):
            if address is None or address.domain:
                return None
            steps.insert(0, (address.slot, address.function))
            above = controllers.get(address.bus)
            if above is not None and above.is_expander:
                return PciRoute(above.bus_number, tuple(steps), above.cell)
            if address.bus == 0:
                return PciRoute(0, tuple(steps))
            address = None if above is None else above.address
        return None


class PciRoute(msgspec.Struct, frozen=True):
    """The path to a device: a root bus (None for an expander without a number), then the slot and
    function of each bridge and of the device."""

    root_bus: int | None
    steps: tuple[tuple[int, int], ...]
    cell: int | None = None


Role = Literal["guest", "host", "neither"]
X86 = ("x86_64", "i686")
TOPOEXT = "# In <cpu>: <feature policy='require' name='topoext'/>"


# CPUs and nodes as libvirt lists them: `0-3,^2,8` is 0, 1, 3 and 8.

MOST = 16384
"""libvirt itself takes no number from here on (VIR_DOMAIN_CPUMASK_LEN)."""
_PIECE = re.compile(r"(\^?)([0-9]{1,9})(?:-([0-9]{1,9}))?", re.ASCII)

_RANGE = re.compile(r"([0-9]{1,9})-([0-9]{1,9})", re.ASCII)


def parse_cpu_set(text: str) -> tuple[int, ...]:
    """Reads `0-3,^2` as ascending numbers. Raises ValueError for a text that libvirt refuses."""
    found: set[int] = set()
    for piece in text.split(","):
        match = _PIECE.fullmatch(piece.strip())
        if match is None or (match[1] and match[3]):
            raise ValueError(f"{piece.strip()[:40]!r} is not a number or range")
        first, last = int(match[2]), int(match[3] or match[2])
        if not first <= last < MOST:
            raise ValueError(
                f"{piece.strip()!r} is no ascending range of numbers from 0 to {MOST - 1}"
            )
        if match[1]:
            found.discard(first)
        else:
            found.update(range(first, last + 1))
    if not found:
        raise ValueError("it is empty")
    return tuple(sorted(found))


def length(text: str) -> int:
    """Estimates how many numbers a list such as `0-99,128` has, without building it."""
    ends = ((int(low), min(int(high), MOST)) for low, high in _RANGE.findall(text))
    return text.count(",") + 1 + sum(max(0, high - low) for low, high in ends)


# Sizes as libvirt writes them, with units.


def scale(unit: str) -> int:
    """Returns the bytes of a unit (`KiB`, `MB`, `b`). Raises InputError if the unit is unknown."""
    match = re.fullmatch(r"([kmgtpe]?)(i?b)|([kmgtpe])|bytes", unit, re.IGNORECASE)
    if match is None:
        raise InputError(f"the unit {unit[:40]!r} is unknown: give KiB, MiB or GiB")
    power = "_kmgtpe".index((match[1] or match[3] or "_").lower())
    return int((1000 if (match[2] or "").lower() == "b" else 1024) ** power)

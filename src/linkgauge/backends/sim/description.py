"""Reads YAML descriptions of simulated machines; docs/simulation.md explains each field. Rates are
in bytes/s for one direction. Units of sizes are powers of two."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from importlib import resources
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
import yaml

from linkgauge.backends.protocol import Copy
from linkgauge.machine.given import MOST_YAML, encodable, read_given, yaml_problem
from linkgauge.model.errors import InputError
from linkgauge.model.hardware.machine import MemoryKind
from linkgauge.model.hardware.map import Routing
from linkgauge.model.names import hint
from linkgauge.model.operations.collective import Algorithm
from linkgauge.model.operations.operation import Operation
from linkgauge.model.recorded import PathKind, kind_of
from linkgauge.model.transfer import Access
from linkgauge.registry import sources_of_machines

from .quantities import Fraction, Rate, Seconds, Share, Size, WorkRate, quantity
from .run_position import Noise

LinkType = Literal["pcie", "fabric", "socket", "network", "internal"]
SwitchType = Literal["pcie", "root", "fabric", "network"]
Translation = Literal["passthrough", "translating"]
Count = Annotated[int, msgspec.Meta(ge=1, le=16_384)]
Positive = Annotated[float, msgspec.Meta(gt=0)]


class Exchanges(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How collectives exchange data. `efficiency` is the share of the links' rates that they reach
    at best, `reductions` that share if switches reduce; null means `efficiency`."""

    algorithm: Algorithm = "ring"
    rings: Count | None = None
    efficiency: Share = Share(1.0)
    reductions: Share | None = None


class Caps(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The highest rates of an engine in bytes/s; null means no limit. `peer_read` and `peer_write`
    limit the total rate at which all other devices read and write this device's memory. `startup`
    is the time in seconds before bytes move, unless `write_startup` or `peer_startup` applies."""

    read: Rate | None = None
    write: Rate | None = None
    peer_read: Rate | None = None
    peer_write: Rate | None = None
    local: Rate | None = None
    startup: Seconds = Seconds(3e-6)
    write_startup: Seconds | None = None
    peer_startup: Seconds | None = None


class LinkKind(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A kind of link. Each direction has `rate` × `count` bytes/s. A payload of P bytes takes P ÷
    `efficiency` bytes in its own direction, and P × `reverse` bytes in the other, by access: `read`
    if the destination's engine copies, `write` if the source's. A link adds `latency` seconds to
    the round trip of an access, and the relative standard deviation `jitter` to a figure.
    `both_each` has the highest rates of reads and of writes while both occur."""

    kind: LinkType
    rate: Rate | None = None
    rate_reported: bool = True
    state_reported: bool = True
    assumed: bool = False
    count: Count = 1
    both: Rate | None = None
    both_each: dict[Access, Rate | None] = {}
    sm_both_each: dict[Access, Rate | None] | None = None
    efficiency: dict[Access, Share] = {}
    sm_efficiency: dict[Access, Share] | None = None
    reverse: dict[Access, Fraction] = {}
    sm_reverse: dict[Access, Fraction] | None = None
    latency: Seconds = Seconds(0.0)
    jitter: Fraction = Fraction(0.0)
    speed: Positive | None = None
    idle_speed: Positive | None = None
    width: Count | None = None
    max_speed: Positive | None = None
    max_width: Count | None = None
    max_payload: int = 256
    max_read_request: int = 512


class Turns(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How host threads and a device that run at once share a node's links. Rates are relative to
    that of one side alone. `reads` (both read), `writes` (both write) and `mixed` are both sides'
    total rate. A device that writes gets the fraction `write` of the total, one that reads gets the
    rate `read`; threads get the rest."""

    read: Fraction = Fraction(0.5)
    write: Fraction = Fraction(0.5)
    reads: Fraction = Fraction(1.0)
    writes: Fraction = Fraction(1.0)
    mixed: Fraction = Fraction(1.0)

    def __post_init__(self) -> None:
        if not (0 < self.read < min(self.reads, self.mixed) and 0 < self.write < 1 and self.writes):
            raise ValueError("each side gets a part of the time: give parts between 0 and 1")

    def shares(self, *, device: bool, threads: bool) -> tuple[float, float]:
        """Returns the device's and the threads' shares. True means that this side writes."""
        both = self.mixed if device != threads else self.writes if device else self.reads
        own = both * self.write if device else self.read
        return own, both - own


class NodeGroup(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """NUMA nodes of one kind. `rate` limits reads and writes together, in bytes/s. An access takes
    `latency` seconds. A byte that threads write to an array counts as `writes` bytes, because the
    threads first read it into a cache."""

    count: Count = 1
    cpus: Annotated[int, msgspec.Meta(ge=0, le=4096)]
    memory: Size
    rate: Rate = Rate(300e9)
    writes: Positive = 1.0
    latency: Seconds = Seconds(100e-9)
    cache: Size = Size(32 << 20)
    turns: bool | Turns = False
    kind: MemoryKind = "DRAM"
    assumed: tuple[Literal["cpus", "memory", "rate", "latency"], ...] = ()


class HostDescription(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A host. `thread` is the rate of a thread in bytes/s. A thread takes `call` seconds to enqueue
    a copy, and `wait` seconds to notice the end of a copy in a ping-pong. If `gpudirect` is false,
    data between devices of different hosts goes through the hosts' memory. `peers` limits traffic
    between devices through a root complex, in bytes/s by IOMMU mode."""

    nodes: tuple[NodeGroup, ...]
    cpu_model: str
    cpu_vendor: str | None = None
    hostname: str = "simulated"
    architecture: str = "x86_64"
    system: str = "Simulated Linux"
    kernel: str = "6.8.0-simulated"
    hypervisor: str | None = None
    iommu: Translation = "passthrough"
    gpudirect: bool = True
    peers: dict[Translation, Rate | None] = {}
    governor: str = "performance"
    frequency_driver: str | None = None
    sockets: Count = 1
    threads_per_core: Count = 1
    thread: Rate = Rate(12e9)
    call: Seconds = Seconds(2e-6)
    wait: Seconds = Seconds(0.0)
    distances: tuple[tuple[int, ...], ...] | None = None


class DeviceGroup(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Devices of one kind. `memory_rate` limits reads and writes together, in bytes/s. PCI
    addresses must be quoted, as YAML would read them as numbers. If `node` is true, the machine is
    a cluster, and the group has one device on each host: device i on host i. PCI then shows only
    the devices whose addresses are in `pci`."""

    count: Count = 1
    model: str
    memory: Size
    driver: str = "simulated"
    vendor_id: int = 0x1AF4
    device_id: int = 0x1110
    revision: int = 0
    memory_rate: Rate | None = None
    memory_rate_reported: Rate | None = None
    products: dict[Literal["fp32", "tf32", "bf16", "fp16"], WorkRate] = {}
    memory_latency: Seconds = Seconds(300e-9)
    ce: Caps = Caps()
    sm: Caps = Caps()
    forwards: bool = False
    peer_access: Literal["all", "fabric", "none"] = "all"
    stages: bool = False
    pci: tuple[str, ...] | None = None
    uuids: tuple[str, ...] | None = None
    numa_node: int | None = None
    node: bool = False
    properties: dict[str, Any] = {}
    assumed: tuple[Literal["memory", "memory_rate", "memory_latency"], ...] = ()


class AdapterGroup(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Network adapters of a kind. A `network` link takes the first free port. `mtu` is in bytes."""

    name: str
    model: str = ""
    rate: Rate | None = None
    ports: Annotated[int, msgspec.Meta(ge=1, le=8)] = 1
    link_layer: Literal["InfiniBand", "Ethernet"] = "InfiniBand"
    mtu: int | None = None
    vendor_id: int = 0x15B3
    device_id: int = 0x1021
    revision: int = 0
    pci: tuple[str, ...] | None = None
    numa_node: int | None = None
    assumed: bool = False

    @property
    def class_code(self) -> int:
        return 0x020000 if self.link_layer == "Ethernet" else 0x020700


class SwitchGroup(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Switches of a kind. `acs_redirect` sends traffic between devices to the root complex."""

    name: str
    kind: SwitchType = "root"
    model: str = ""
    vendor_id: int = 0x1AF4
    device_id: int = 0x1111
    revision: int = 0
    acs_redirect: bool = False


class LinkGroup(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Links of one kind. They join each two of the names in `mesh`, the two names of each of
    `pairs`, each name in `each` to one in `to` (consecutive names may share it), or each name in
    `every` to all in `to`."""

    kind: str
    mesh: str | None = None
    pairs: tuple[tuple[str, str], ...] | None = None
    each: str | None = None
    every: str | None = None
    to: str | None = None
    name: str | None = None


class Description(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The description of a machine. `noise_buffers` and `noise_moments` are relative standard
    deviations between repetitions. `known` lists the kinds of measurements that the machine can
    time; null means all kinds."""

    source: str
    host: HostDescription
    link_kinds: dict[str, LinkKind] = {}
    switches: tuple[SwitchGroup, ...] = ()
    devices: tuple[DeviceGroup, ...] = ()
    adapters: tuple[AdapterGroup, ...] = ()
    links: tuple[LinkGroup, ...] = ()
    routing: Routing = "spread"
    collectives: Exchanges = Exchanges()
    noise: Fraction = Fraction(0.001)
    noises: dict[PathKind, Noise] = {}
    noise_buffers: Fraction = Fraction(0)
    noise_moments: Fraction = Fraction(0)
    seed: int = 1
    faults: tuple[str, ...] = ()
    known: tuple[str, ...] | None = None

    def noise_of(self, copies: Sequence[Copy], does: Operation) -> Noise:
        if self.noises:
            transfers, size = [copy.transfer for copy in copies], copies[0].size
            kind = kind_of(transfers, does, size, is_latency=does.is_latency)
            if kind in self.noises:
                return self.noises[kind]
        return Noise(self.noise, Fraction(math.hypot(self.noise_buffers, self.noise_moments)))


@lru_cache(maxsize=32)
def parse_description(text: str) -> Description:
    """Parses a description. Raises InputError with the place of the first error."""
    try:
        tree = encodable(yaml.safe_load(text.replace("_told:", "_reported:")))  # earlier keys
    except (yaml.YAMLError, TypeError, ValueError, RecursionError) as error:
        mark = getattr(error, "problem_mark", None)
        where = f"line {mark.line + 1}: " if mark else ""
        raise InputError(f"machine description: not YAML: {where}{yaml_problem(error)}") from error
    return description_of(tree)


def description_of(tree: object) -> Description:
    if not isinstance(tree, dict):
        raise InputError("a machine description is a mapping with the fields host, devices, …")
    try:
        return msgspec.convert(tree, Description, dec_hook=quantity)
    except msgspec.ValidationError as error:
        raise InputError(f"machine description: {error}") from error


def shipped() -> tuple[str, ...]:
    files = (resources.files(__package__) / "machines").iterdir()
    return tuple(sorted(f.name.removesuffix(".yml") for f in files if f.name.endswith(".yml")))


def load(name: str) -> tuple[str, str]:
    """Returns a machine's name and description. `name` is a shipped machine, a file, or hardware
    (`8 x H100`). Raises InputError if there is none or the file is unreadable."""
    path = Path(name)
    ours = resources.files(__package__) / "machines" / f"{name}.yml"
    if path.name == name and ours.is_file():
        return name, ours.read_text("utf-8")
    if path.suffix not in (".yml", ".yaml"):
        made = (describe(name) for describe in sources_of_machines())
        described: tuple[str, str] | None = next(filter(None, made), None)
        if described is not None:
            return described
        if path.name == name:
            otherwise = f": give one of {', '.join(shipped())}, a .yml, or a known card: 8 x H100"
            raise InputError(f"unknown machine {name!r}{hint(name, shipped(), otherwise)}")
    try:
        return path.stem, read_given(path, MOST_YAML).decode("utf-8")
    except (OSError, UnicodeDecodeError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "not a text file"
        raise InputError(f"machine {name!r} cannot be read: {reason}") from error

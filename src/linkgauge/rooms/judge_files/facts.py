"""Values that readers return: the figures of a tool, and facts about a machine."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Literal, NamedTuple

import msgspec
from msgspec.structs import asdict, replace

from linkgauge.benchmarks.catalog import CATALOG
from linkgauge.benchmarks.table import Layout, Row
from linkgauge.machine.dimms import Dimm, channels_of
from linkgauge.machine.tree import parse_cpu_list
from linkgauge.model.grouped import grouped
from linkgauge.model.names import and_all
from linkgauge.model.operations.collective import Collective
from linkgauge.model.operations.operation import OperationName
from linkgauge.model.transfer import Report
from linkgauge.model.units import BANDWIDTH

from .products import VENDORS, product_of

MIB = 1 << 20
_MOST = 1e18
"""The largest figure that is accepted in any unit."""
_BEST_LINK, _BEST_MEMORY = 4e12, 1e14
"""Bytes/s beyond those of any accelerator's links and memory, and of any host's caches, with room
for what is to come: the fastest links of 2026 carry 1.8 TB/s each way."""


class ReportedCard(msgspec.Struct, frozen=True):
    """A PCIe card; None is unknown. `pci` is an address (`0000:1b:00.0`) or a bus (`1b`), `speed`
    and `width` are the trained link's GT/s and lanes, `above` are bridges, nearest first."""

    model: str | None = None
    pci: str | None = None
    node: int | None = None
    speed: float | None = None
    width: int | None = None
    max_speed: float | None = None
    max_width: int | None = None
    above: tuple[str, ...] = ()

    @property
    def narrow(self) -> str:
        """Returns what the link is and could be if it has lost lanes, else nothing."""
        has_lost = self.width and self.max_width and self.width < self.max_width
        return self.link if has_lost else ""

    @property
    def link(self) -> str:
        speed, most = self.speed or 0.0, self.max_speed or 0.0
        return f"PCIe {speed:g} GT/s x{self.width} of {most:g} GT/s x{self.max_width}"


class NarrowLink(NamedTuple):
    """A link that has lost lanes, as a warning says it, and the functions (`at`) that have it."""

    at: tuple[str, ...]
    said: str

    def __str__(self) -> str:
        return f"{and_all(self.at)}: {self.said}" if self.at else self.said


class ReportedGpu(ReportedCard, frozen=True):
    """An accelerator. `memory` is in bytes. `links` is the number of active fabric links (NVLink),
    and `link_rate` the bytes/s of each of them in one direction."""

    links: int | None = None
    link_rate: float | None = None
    memory: int | None = None


class ReportedNic(ReportedCard, frozen=True):
    """An adapter. `rate` is a port's bytes/s one way. `near` has distances to GPUs (`PIX`)."""

    rate: float | None = None
    ports: int = 1
    ethernet: bool | None = None
    near: Mapping[int, str] = {}


class Bridge(msgspec.Struct, frozen=True):
    """A PCIe switch's port, or a root port. `acs`: it redirects traffic to the root complex."""

    acs: bool | None = None
    is_switch: bool = False


class ReportedNode(msgspec.Struct, frozen=True):
    cpus: int | None = None
    memory: int | None = None


class Facts(msgspec.Struct, frozen=True):
    """What texts say of a machine. By accelerator: `gpus`, `nearest` (distance to an adapter),
    `cpus` (near it) and `bound` (CPUs of its process, `0-31,64-95`). `nics` is by name (`mlx5_0`)
    or PCI address, `joins` (`NV12`, `PIX`, `SYS`, `XGMI`) by two accelerators, the lower first.
    `counted` is the number of accelerators that a text states. `settings` include environment
    variables. `ways` are a library's transports (`SHM`, `P2P`, `NET`). `dimms` includes empty
    slots. `log` has lines of the kernel's log. `vendor` is that of the tool."""

    gpus: Mapping[int, ReportedGpu] = {}
    counted: int | None = None
    nics: Mapping[str, ReportedNic] = {}
    joins: Mapping[tuple[int, int], str] = {}
    bridges: Mapping[str, Bridge] = {}
    nodes: Mapping[int, ReportedNode] = {}
    distances: tuple[tuple[int, ...], ...] | None = None
    cpu_model: str | None = None
    sockets: int | None = None
    architecture: str | None = None
    hypervisor: str | None = None
    hostname: str | None = None
    adapters: int | None = None
    used_adapters: int | None = None
    nearest: Mapping[int, str] = {}
    warnings: frozenset[str] = frozenset()
    narrow: frozenset[NarrowLink] = frozenset()
    log: frozenset[str] = frozenset()
    relaxed: bool | None = None
    settings: Mapping[str, str] = {}
    ways: frozenset[str] = frozenset()
    cpus: Mapping[int, str] = {}
    bound: Mapping[int, str] = {}
    iommu: Literal["translating", "passthrough"] | None = None
    dimms: tuple[Dimm, ...] = ()
    vendor: str | None = None

    @property
    def cards(self) -> tuple[ReportedGpu | ReportedNic, ...]:
        return (*self.gpus.values(), *self.nics.values())


def vendor_of(facts: Facts) -> str:
    """Returns the product's vendor, else the tool's, else a model name's, else `nvidia`."""
    models = [gpu.model or "" for gpu in facts.gpus.values()]
    known = [product.vendor for product in map(product_of, models) if product]
    named = (v for v, about in VENDORS.items() if any(re.search(about.named, m) for m in models))
    return next(iter(known), facts.vendor or next(named, "nvidia"))


def is_telling(facts: Facts) -> bool:
    """Whether texts without figures tell of adapters, memory, links or a fault. Cards with a slow
    link may save power."""
    cards = [o for o in facts.cards if o.narrow or (o.speed or 0) >= (o.max_speed or 0)]
    known = cards, facts.joins, facts.adapters, facts.dimms
    faults = facts.warnings, facts.narrow, facts.log
    speeds = map(facts.settings.get, ("adapter Gb/s", "DIMM MT/s"))
    return any(map(bool, (*known, *faults, *speeds))) or "NET/Socket" in facts.ways


def warnings_of(facts: Facts) -> Iterator[str]:
    """Yields what is odd about a machine by several of its facts."""
    for index, own in facts.bound.items():
        near = facts.cpus.get(index)
        if near and {*parse_cpu_list(own)}.isdisjoint(parse_cpu_list(near)):
            yield f"the process of GPU {index} is bound to CPUs {own}, but {near} are beside it"
    if len(facts.nodes) == 1 < (facts.sockets or 1):
        yield (
            f"{facts.sockets} sockets are one NUMA node: numa=off or the BIOS (node interleaving, "
            "NPS0) hides from Linux which memory is near, so much of it is far"
        )
    ports = [at for at, bridge in facts.bridges.items() if bridge.acs]
    if ports and facts.vendor and not any(one.pci for one in facts.gpus.values()):
        yield (
            f"ACS redirects at {and_all(ports[:4])}, so that what accelerators below exchange goes "
            "up to the CPU; no text tells which these are (lspci -tv, and the GPUs' addresses)"
        )
    filled, empty = channels_of(facts.dimms, facts.sockets)
    if filled and empty:
        of = f"{len(empty)} of {len(filled) + len(empty)} channels"
        yield f"no memory module at {and_all(empty)}: {of} are empty"


class HostFigure(NamedTuple):
    """A figure for which the catalogue has no benchmark. `work` is a transfer (`host:0 -> null by
    host:0.cpu`); `parts` are transfers with figures of their own."""

    work: str
    unit: str = BANDWIDTH.symbol
    report: Report = Report.FIRST
    operation: OperationName = "copy"
    parts: tuple[str, ...] = ()
    with_device: bool = False


class ReportedFigure(NamedTuple):
    """A figure that a tool printed, in the benchmark's unit. `size` is a transfer's bytes. `ranks`
    is the number of accelerators that take part. `part` numbers one of several concurrent transfers
    (None: all of them). `of` or `host` defines a benchmark that the catalogue lacks."""

    benchmark: str
    row: str
    column: str
    figure: float
    size: int | None = None
    work: Collective | None = None
    ranks: int = 0
    part: int | None = None
    of: Row | None = None
    host: HostFigure | None = None
    failure: str = ""

    @property
    def is_measured(self) -> bool:
        """Whether the figure is positive: tools print 0 for what they could not measure."""
        return 0 < self.figure < _MOST

    @property
    def is_possible(self) -> bool:
        if self.work is not None:
            is_alone = self.ranks == 1 or self.figure <= 0
            return is_alone or (self.size or 0) / self.figure < _BEST_LINK
        unit = self.host.unit if self.host is not None else BANDWIDTH.symbol
        best = _BEST_LINK if "_to_" in self.benchmark else _BEST_MEMORY
        return unit != BANDWIDTH.symbol or self.figure < best

    @property
    def place(self) -> tuple[str, str]:
        return self.row, self.column

    @property
    def is_of_pair(self) -> bool:
        is_copy = self.benchmark.startswith("device_to_device_") and "memcpy" in self.benchmark
        return is_copy and self.row != self.column

    def of_run(self, run: str) -> ReportedFigure:
        row = self.of or CATALOG.get(self.benchmark)
        if self.host is not None or self.work is not None or not isinstance(row, Row):
            return self._replace(column=self.column + run)
        name = self.benchmark + run
        return self._replace(benchmark=name, of=replace(row, name=name, title=row.title + run))


_NOT_IN_CATALOGUE = {
    row.name: row
    for row in (
        Row("device_to_device_memcpy_staged", "memcpy CE device(row) -> device(column) without P2P",
            Layout.PAIRS, "r -> c by r.ce"),
        Row("device_to_device_bidirectional_memcpy_staged",
            "memcpy CE device(row) <-> device(column) without P2P",
            Layout.PAIRS, "r -> c by r.ce & c -> r by c.ce", Report.SUM),
        Row("host_to_device_bidirectional_memcpy_total",
            "memcpy CE host(row) <-> device(column), both ways",
            Layout.EACH_DEVICE, "h -> d by d.ce & d -> h by d.ce", Report.SUM),
    )
}  # fmt: skip


def copied(
    source: int | None,
    destination: int | None,
    gigabytes: float,
    size: int,
    kind: str = "ce",
    *,
    reads: bool = False,
    both: bool = False,
    staged: bool = False,
) -> ReportedFigure:
    """Returns the figure of a copy of `gigabytes` GB/s between accelerators or the host (None). The
    source writes, or the destination reads if `reads`. `both`: the rate is both directions' sum.
    `staged`: the copy goes through host memory."""
    row, column, ways = 0, destination, "bidirectional_memcpy" if both else "memcpy"
    if source == destination:
        name = "device_local_copy"
    elif source is None:
        name = f"host_to_device_{ways}_{'total' if both else kind}"
    elif destination is None:
        name, column = f"device_to_host_{ways}_{kind}", source
    else:
        by = "staged" if staged else f"{'read' if reads else 'write'}_{kind}"
        name = f"device_to_device_{ways}_{by}"
        row, column = (destination, source) if reads else (source, destination)
    place, of = (str(row), str(column)), _NOT_IN_CATALOGUE.get(name)
    return ReportedFigure(name, *place, gigabytes * 1e9, size, of=of)


class Failure(NamedTuple):
    test: str
    said: str


class Log(msgspec.Struct, frozen=True):
    """A tool's output: its figures, `failures` of tests without figures, and `remarks` to show."""

    tool: str
    figures: tuple[ReportedFigure, ...]
    version: str | None = None
    hosts: tuple[str, ...] = ()
    failures: tuple[Failure, ...] = ()
    remarks: tuple[str, ...] = ()
    # The addresses of connections: its own, and the other side's.
    ends: tuple[frozenset[str], frozenset[str]] = (frozenset(), frozenset())

    def is_other_side(self, other: Log) -> bool:
        return all(a & b for a, b in zip(self.ends, reversed(other.ends), strict=True))


def merged(found: Iterable[Facts]) -> tuple[Facts, tuple[str, ...]]:
    """Returns all texts' facts as one, and each contradiction once. The first text wins."""
    whole, clashes = Facts(), dict[_Clash, None]()
    for facts in found:
        whole = _value(whole, facts, "", clashes)
    equivalent = grouped(((re.sub(r"\d+$", "", what), *said), what) for what, *said in clashes)
    return whole, tuple(
        f"{what}{', '.join(name.removeprefix(what) for name in names)}: {one} in one text, "
        f"{other} in another"
        for (what, one, other), names in equivalent.items()
    )


_Clash = tuple[str, str, str]


def _value(one: Any, other: Any, what: str, clashes: dict[_Clash, None]) -> Any:
    if isinstance(one, msgspec.Struct):
        owner = f" of {what}" if what else ""
        ours, theirs = asdict(one), asdict(other)
        return replace(one, **{
            name: _value(value, theirs[name], name + owner, clashes) for name, value in ours.items()
        })  # fmt: skip
    if isinstance(one, Mapping):
        shown = {key: "-".join(map(str, key)) if isinstance(key, tuple) else key for key in other}
        return {**one, **{
            key: _value(one.get(key, value), value, f"{what} {shown[key]}", clashes)
            for key, value in other.items()
        }}  # fmt: skip
    if isinstance(one, frozenset):
        return one | other
    if one in (None, (), {}) or other in (None, (), {}) or one == other:
        return other if one in (None, (), {}) else one
    if not _is_equivalent(one, other):
        clashes[what, str(one), str(other)] = None
    is_fuller = isinstance(one, str) and one.lower() in str(other).lower()
    return other if is_fuller else one


def _is_equivalent(one: object, other: object) -> bool:
    if isinstance(one, str) and isinstance(other, str):
        a, b = sorted((one.lower(), other.lower()), key=len)
        return a in b or bool(product_of(one) and product_of(one) == product_of(other))
    if isinstance(one, int | float) and isinstance(other, int | float):
        return abs(one - other) <= 0.1 * max(abs(one), abs(other)) > 10
    return False

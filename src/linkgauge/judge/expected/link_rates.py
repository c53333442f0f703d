"""Computes the rates of links. On PCIe, a write carries up to MaxPayload bytes, and a read requests
up to MaxReadReq bytes. Completions of reads are assumed to carry `COMPLETION` bytes each, and
kernels to move cache lines of `LINE` bytes. Flow control (a few percent) is left out."""

from __future__ import annotations

import operator
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Literal, NamedTuple

import msgspec
from msgspec.structs import astuple

from linkgauge.model.hardware.bundles import LinkBundle, coding
from linkgauge.model.hardware.inventory import PciFunction, PciLink
from linkgauge.model.hardware.map import Flow
from linkgauge.model.hardware.pcie import encoding, link_rate, packet_overhead
from linkgauge.model.hardware.wiring import Wire
from linkgauge.model.transfer import Access, Transfer

# The segments of a transfer's path, as far as the machine's readers found them.
#
# A segment is one direction of a link, or a memory. Nothing here is measured or guessed: an unknown
# path raises `Unknown`; a doubt is a reason why only the achievable figure is unknown.


class Unknown(Exception):
    """Raised if the path of a transfer is unknown. The text is the reason."""


LOOSE = 0.5
"""The share below which a figure is low if what is expected is only known roughly: kernels reading
over PCIe, both ways over one PCIe link, fabrics whose protocol is not published, threads against
the DIMMs' rate. The lowest known figures there are 0.58 (IPU-M2000) and 0.60 (Zhenwu 810E)."""
START = 100e-6
"""The seconds that the start of a copy may take: 84 us on the slowest known engines (RBLN-CA25, by
rblnBandwidthLatencyTest's page). A shorter transfer says nothing about a link."""
_GPU_START = 10e-6
"""The same over links that only GPUs have: it takes them about 3 us."""
CALL = 100e-6
"""The seconds that the start of a collective's call takes over NVLink and xGMI: 70 to 120 µs of two
H200s at 128 MiB (docs/benchmarks-collectives.md), 75 to 150 of eight."""


class Use(msgspec.Struct, frozen=True):
    """One link or memory that a transfer uses. `rate` is in bytes/s after line coding. Per byte of
    payload, it carries at least `least` bytes (0 for requests, or without a theoretical bound), and
    `cost` bytes with all overhead. `direction` is "up" or "down" (from the host) on a PCIe link,
    "out" or "in" on an interface. `payload` is false for read requests, which go in the opposite
    direction. `start` is the startup time in seconds."""

    link: str
    rate: float
    shown: str
    least: float
    cost: float
    why: str
    direction: str = ""
    payload: bool = True
    measured: bool = False
    start: float = START

    @property
    def segment(self) -> tuple[str, str]:
        return self.link, self.direction


class ExpectedPath(msgspec.Struct, frozen=True):
    """The links and memories that a transfer uses. `doubts` are reasons why only a theoretical
    figure is known. `loose` are reasons why figures of healthy hardware vary. `meets` lists the
    host nodes whose memory a device uses, each with the kind of link."""

    uses: tuple[Use, ...] = ()
    doubts: tuple[str, ...] = ()
    loose: tuple[str, ...] = ()
    meets: tuple[tuple[int, Literal["PCIe", "fabric"]], ...] = ()

    def __add__(self, other: ExpectedPath) -> ExpectedPath:
        own, more = astuple(self), astuple(other)
        return ExpectedPath(*map(operator.add, own, more))

    def flow(self, *, cost: bool) -> Flow:
        """Returns the bytes that each link carries per payload byte, with overhead if `cost`."""
        parts: defaultdict[tuple[str, str], float] = defaultdict(float)
        for use in self.uses:
            if taken := use.cost if cost else use.least:
                parts[use.segment] += taken
        return Flow(tuple(parts.items()))


def capacity(paths: Iterable[ExpectedPath]) -> dict[tuple[str, str], float]:
    return {use.segment: use.rate for path in paths for use in path.uses}


def figure(rate: float) -> str:
    return f"{rate / 1e9:.4g} GB/s"


COMPLETION, SHORT_COMPLETION = 128, 64
"""The payload bytes of a read completion; the second value, a line of the CPU, is for root ports of
at most 8 GT/s."""
LINE = 128
"""The bytes that a kernel reads or writes at once: a cache line of NVIDIA GPUs. On two H200s
kernels reach 0.95 of the rate that packets of this size leave (52 of 54.5 GB/s reading, 52.6 of
53.1 writing)."""
_NVIDIA = 0x10DE
_LINES_UP_TO = 16.0
"""GT/s up to which NVIDIA's copy engines write one line a packet, as kernels do."""
_SHORT_UP_TO = 8.0
MAX_PAYLOAD, MAX_READ_REQUEST = 256, 512
"""The values assumed if the registers cannot be read: the usual ones on servers."""

Trained = Mapping[str, tuple[float, int]]
"""The GT/s and lanes of links as sampled under load, by the device's memory."""


def pcie_path(
    crossed: Sequence[tuple[Wire, str]], access: Access, part: float, kernel: bool, trained: Trained
) -> ExpectedPath:
    """Returns the PCIe path of a share `part` of a transfer. Raises Unknown for unknown links."""
    if not crossed:
        return ExpectedPath()
    packets, uses = _packets(access, kernel, crossed), list[Use]()
    for wire, to in crossed:
        if (lanes := _narrowest(wire, trained.get(wire.device or ""))) is not None:
            uses += packets.uses(lanes, to, part)
    loose = (_IN_FLIGHT,) if kernel and access == "read" else ()
    return ExpectedPath(tuple(uses), loose=loose)


_IN_FLIGHT = "how many reads the device keeps in flight is unknown"


class _Lanes(NamedTuple):
    name: str
    speed: float
    width: int
    best: PciLink

    @property
    def rate(self) -> float:
        return link_rate(self.speed, self.width)

    @property
    def shown(self) -> str:
        best = self.best
        most = f"{best.max_speed or self.speed:g} GT/s x{best.max_width or self.width}"
        shown = f"{self.speed:g} GT/s x{self.width}"
        if most != shown:
            shown += f" (of {most})"
        return f"PCIe {shown} × {encoding(self.speed).name}"


def _narrowest(wire: Wire, sampled: tuple[float, int] | None) -> _Lanes | None:
    """Returns the speed and width of a link: `sampled` (read under load), or else what its slower
    end reports. If unknown, returns None or, for a device's link, raises Unknown."""
    lower = wire.lower.link if wire.lower else PciLink()
    upper = wire.upper.link if wire.upper else PciLink()
    own, above = sampled or _trained(lower) or _trained(wire.reported), sampled or _trained(upper)
    if wire.device is not None and own is None:
        raise Unknown(f"speed or width of the PCIe link of {wire.device} is unknown")
    ends = [_Lanes(wire.name, *at, best) for at, best in ((own, lower), (above, upper)) if at]
    return min(ends, key=operator.attrgetter("rate"), default=None)


def _packets(access: Access, kernel: bool, crossed: Sequence[tuple[Wire, str]]) -> _Packets:
    ends = [end for wire, _ in crossed for end in (wire.lower, wire.upper) if end]
    known = [end.max_payload for end in ends if end.max_payload]
    payload = min(known, default=MAX_PAYLOAD)
    own = crossed[0][0].lower
    request = (own.max_read_request if own else None) or MAX_READ_REQUEST
    assumed = "" if known else " (assumed)"
    if access == "write":
        lines = kernel or _writes_lines(own)
        size = min(payload, LINE) if lines else payload
        return _Packets("write", size, None, "" if lines else assumed)
    root = crossed[-1][0].upper
    short = root is not None and 0 < (root.link.max_speed or 0) <= _SHORT_UP_TO
    size = min(payload, SHORT_COMPLETION if short else COMPLETION)
    return _Packets("completion", size, min(request, LINE) if kernel else request, "")


def _writes_lines(own: PciFunction | None) -> bool:
    most = own.link.max_speed if own is not None and own.vendor == _NVIDIA else None
    return most is not None and most <= _LINES_UP_TO


class _Packets(NamedTuple):
    """PCIe packets of `size` bytes of payload. `request` is the bytes of a read (None: a write)."""

    kind: str
    size: int
    request: int | None
    assumed: str

    def uses(self, link: _Lanes, direction: str, part: float) -> Iterator[Use]:
        of = link.name, link.rate, link.shown
        added = packet_overhead(self.kind, link.speed)
        why = f"{self.size} B{self.assumed} per TLP, {added} B of overhead ({self.kind})"
        yield Use(*of, part, part * (1 + added / self.size), why, direction)
        if self.request:
            asking = part * packet_overhead("request", link.speed) / self.request
            why = f"with requests of {self.request} B the other way"
            back = "up" if direction == "down" else "down"
            yield Use(*of, 0.0, asking, why, back, payload=False)


def _trained(link: PciLink | None) -> tuple[float, int] | None:
    return (link.speed, link.width) if link and link.speed and link.width else None


_COPIED, _STORED = 16, 8
"""The number of flits (16 bytes each) in a packet: a copy engine sends 256 bytes, a kernel's access
at most 128."""
_C2C: dict[Access, float] = {"read": 0.927, "write": 0.66}
_C2C_BY_KERNEL = 0.87
"""The share of NVLink-C2C's rate that copies reach: about 417 and 297 of 450 GB/s by copy engine
(GH200), 201 and 193 of 225 by kernel (GB200)."""
_XGMI = 0.75
"""The share of xGMI's rate that copies reach: 48 of 64 GB/s; checksums and protocol take the
rest."""
_ONE_XGMI = 80e9
"""The highest rate of one xGMI link in bytes/s; faster bundles are several links."""


class _PacketCost(NamedTuple):
    """Bytes on a link per payload byte: `cost` in the payload's direction, `back` the other way."""

    cost: float
    back: float
    why: str
    loose: tuple[str, ...] = ()
    doubts: tuple[str, ...] = ()


def fabric_path(
    ends: tuple[str, str], bundle: LinkBundle, part: float, access: Access, *, kernel: bool
) -> ExpectedPath:
    """Returns a path over fabric links. Raises Unknown if no link is active or has a known rate."""
    if not bundle.count:
        raise Unknown(f"no {bundle.kind} of {' to '.join(ends)} is active")
    if not bundle.rate:
        raise Unknown(f"the rate of {bundle.kind} is unknown")
    packets = _fabric_packets(bundle, access, kernel=kernel)
    is_gpu = bundle.nvlink is not None or bundle.kind.lower().startswith("xgmi")
    forth, back = (Use(
        ">".join(way), bundle.rate, _shown(bundle), least, cost, packets.why, payload=bool(least),
        start=_GPU_START if is_gpu else START,
    ) for way, least, cost in (
        (ends, part, part * packets.cost), (ends[::-1], 0.0, part * packets.back)
    ))  # fmt: skip
    uses = (forth, back) if packets.back else (forth,)
    return ExpectedPath(uses, packets.doubts, packets.loose)


def doubts_of_reads(transfers: Sequence[Transfer], paths: Sequence[ExpectedPath]) -> list[str]:
    """Returns a doubt if several copy engines read from one device, which may limit them."""
    sources = Counter(
        transfer.source.place
        for transfer, path in zip(transfers, paths, strict=True)
        if path.loose and transfer.engine.kind == "ce" and transfer.source.is_device
        if transfer.source.place != transfer.engine.owner
    )
    several = max(sources.values(), default=0) > 1  # 8 readers of a Zhenwu 810E get as much as one
    return ["how much a device gives several copy engines at once is unknown"] if several else []


def _fabric_packets(bundle: LinkBundle, access: Access, *, kernel: bool) -> _PacketCost:
    kind = bundle.kind.lower()
    if bundle.nvlink is not None:
        return _of_nvlink(bundle.nvlink, _STORED if kernel else _COPIED)
    if kind.startswith("c2c"):
        share = _C2C_BY_KERNEL if kernel else _C2C[access]
        why = f"{share:.1%} of NVLink-C2C is reachable {'to' if access == 'read' else 'from'} it"
        return _PacketCost(1 / share, 0.0, why, ("how its packets are made is unknown",))
    if kind.startswith("xgmi"):
        why = f"checksums and protocol leave {_XGMI:.0%} of {bundle.kind}"
        several = not kernel and bundle.rate > _ONE_XGMI
        doubts = ("a copy engine may drive one link of several",) if several else ()
        return _PacketCost(1 / _XGMI, 0.0, why, (), doubts)
    why = f"the overhead of {bundle.kind} packets is unknown"
    return _PacketCost(1.0, 0.0, f"{why}, so none is deducted", (why,))


def _of_nvlink(generation: int, data: int) -> _PacketCost:
    """Returns the cost of NVLink packets with `data` flits of payload."""
    beside, back = (1, 1) if generation in (1, 2) else (2, 0)  # flits added, and in the answer
    why = f"{data} of {data + beside} flits of a packet carry data"
    return _PacketCost(1 + beside / data, back / data, f"{why}, one flit answers" if back else why)


def _shown(bundle: LinkBundle) -> str:
    share = coding(bundle.each)
    coded = "" if share == 1 else f" × {share:.4g}"
    of = "" if bundle.count == bundle.all else f" of {bundle.all}"
    return f"{bundle.count}{of} {bundle.kind} × {figure(bundle.each)}{coded}"

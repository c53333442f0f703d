"""Computes the rate of accelerators' own links after the overhead of packets: NVLink by generation
and engine, NVLink-C2C and xGMI. docs/expect-formulas.md has the sources."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from linkgauge.model.hardware.bundles import LinkBundle, coding
from linkgauge.model.transfer import Access, Transfer

from .link_rates import ExpectedPath, Unknown, Use, figure

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
    """The cost of a byte of payload on a link, in bytes. `cost` is in the direction of the payload,
    and `back` in the other direction."""

    cost: float
    back: float
    why: str
    loose: tuple[str, ...] = ()
    doubts: tuple[str, ...] = ()


def fabric_path(
    ends: tuple[str, str], bundle: LinkBundle, part: float, access: Access, *, kernel: bool
) -> ExpectedPath:
    """Returns the path over the parallel links from the first device to the second. Raises Unknown
    if their rate is unknown."""
    if not bundle.count:
        raise Unknown(f"no {bundle.kind} of {' to '.join(ends)} is active")
    if not bundle.rate:
        raise Unknown(f"the rate of {bundle.kind} is unknown")
    packets = _packets(bundle, access, kernel=kernel)
    forth, back = (Use(
        ">".join(way), bundle.rate, _shown(bundle), least, cost, packets.why, payload=bool(least)
    ) for way, least, cost in (
        (ends, part, part * packets.cost), (ends[::-1], 0.0, part * packets.back)
    ))  # fmt: skip
    uses = (forth, back) if packets.back else (forth,)
    return ExpectedPath(uses, packets.doubts, packets.loose)


def doubts_of_reads(transfers: Sequence[Transfer], paths: Sequence[ExpectedPath]) -> list[str]:
    """Returns the reasons why copy engines that read one device together may get less than its
    links carry. On fabrics whose protocol is published they get all of it; eight Zhenwu 810E give
    all readers together what they give one."""
    sources = Counter(
        transfer.source.place
        for transfer, path in zip(transfers, paths, strict=True)
        if path.loose and transfer.engine.kind == "ce" and transfer.source.is_device
        if transfer.source.place != transfer.engine.owner
    )
    several = max(sources.values(), default=0) > 1
    return ["how much a device gives several copy engines at once is unknown"] if several else []


def _packets(bundle: LinkBundle, access: Access, *, kernel: bool) -> _PacketCost:
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
    return _PacketCost(1.0, 0.0, why, (why,))


def _of_nvlink(generation: int, data: int) -> _PacketCost:
    """Returns the cost of packets on NVLink. Versions 1 and 2 send a header before the data and
    answer with a flit (a unit of the link). From version 3 on, two flits are added to the data, and
    there is no visible answer."""
    beside, back = (1, 1) if generation in (1, 2) else (2, 0)
    why = f"packets of {data} in {data + beside} flits"
    return _PacketCost(1 + beside / data, back / data, f"{why}, answered by one" if back else why)


def _shown(bundle: LinkBundle) -> str:
    share = coding(bundle.each)
    coded = "" if share == 1 else f" × {share:.4g}"
    of = "" if bundle.count == bundle.all else f" of {bundle.all}"
    return f"{bundle.count}{of} {bundle.kind} × {figure(bundle.each)}{coded}"

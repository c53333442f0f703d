"""Rates of the accelerators' own links: NVLink and the like."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from linkgauge.model.inventory import FabricLink

from .path import ExpectedPath, Segment, Unknown, Use, figure

PACKET = 16 / 18
"""Payload share of an NVLink: a packet of 256 bytes is 16 flits of 16 bytes after a header and an
address flit. Source: D. Foley and J. Danskin, Ultra-Performance Pascal GPU and NVLink Interconnect,
IEEE Micro 37 (2017). Two H200s reach 0.98 to 0.99 of it by copy engine and 0.93 by kernel."""

_CODING = {25781: 64 / 66, 26562: 514 / 544 * 256 / 257, 53125: 514 / 544 * 256 / 257}
"""Share left by line coding, by signalling rate in MB/s: 64b/66b for NVLink 2 and 3, the
Reed-Solomon code and 256b/257b for NVLink 4 and 5 (as for 100G and 200G Ethernet lanes, IEEE 802.3
clauses 91 and 119). The result is the 25 or 50 GB/s of NVIDIA's data sheets; a rate that is not
listed is assumed to be net of coding already."""


class LinkBundle(msgspec.Struct, frozen=True):
    """Parallel links: `count` of `all` are active, and `rate` is their total after line coding;
    `nominal` is the total signalling rate of all."""

    count: int
    all: int
    rate: float
    kind: str
    each: float
    nominal: float

    @property
    def shown(self) -> str:
        share = _coding(self.each)
        coded = "" if share == 1 else f" × {share:.4g}"
        of = "" if self.count == self.all else f" of {self.all}"
        return f"{self.count}{of} {self.kind} × {figure(self.each)}{coded}"

    @property
    def is_nvlink(self) -> bool:
        return self.kind.lower().startswith("nvlink")

    @staticmethod
    def joined(many: Sequence[LinkBundle], idle: int = 0) -> LinkBundle:
        """All of them as one, plus `idle` links that are down, whose remote ends are unknown."""
        return LinkBundle(
            sum(bundle.count for bundle in many),
            sum(bundle.all for bundle in many) + idle,
            sum(bundle.rate for bundle in many),
            many[0].kind,
            many[0].each,
            sum(bundle.nominal for bundle in many),
        )


def bundles(links: Iterable[FabricLink]) -> dict[str | None, LinkBundle]:
    """Links by where they lead; those that are down count only in `all` and `nominal`."""
    found: dict[str | None, LinkBundle] = {}
    for link in links:
        remote = None if link.remote == "gpu" else link.remote  # which of several is unknown
        known = found.get(remote, LinkBundle(0, 0, 0.0, link.kind, 0.0, 0.0))
        each, rate, count = known.each, known.rate, known.count
        if link.active is not False:
            each = link.rate or 0.0
            rate, count = rate + each * _coding(each), count + 1
        nominal = known.nominal + (link.rate or 0.0)
        found[remote] = LinkBundle(count, known.all + 1, rate, link.kind, each, nominal)
    return found


def fabric_path(ends: tuple[str, str], bundle: LinkBundle, part: float) -> ExpectedPath:
    """The path over parallel links that join these two, in this order. Raises Unknown."""
    if not bundle.count:
        raise Unknown(f"no {bundle.kind} of {' to '.join(ends)} is active")
    if not bundle.rate:
        raise Unknown(f"the rate of {bundle.kind} is unknown")
    segment = Segment(">".join(ends), bundle.rate, bundle.shown)
    if bundle.is_nvlink:
        return ExpectedPath((Use(segment, part, part / PACKET, "packets of 16 in 18 flits"),))
    why = f"the overhead of {bundle.kind} packets is unknown"
    return ExpectedPath((Use(segment, part, part, why),), loose=(why,))


def _coding(rate: float) -> float:
    return _CODING.get(int(rate / 1e6), 1.0)

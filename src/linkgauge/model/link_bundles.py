"""Parallel links of an accelerator's own fabric, counted as one: NVLink and the like."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from .inventory import FabricLink

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
            rate, count = rate + each * coding(each), count + 1
        nominal = known.nominal + (link.rate or 0.0)
        found[remote] = LinkBundle(count, known.all + 1, rate, link.kind, each, nominal)
    return found


def coding(rate: float) -> float:
    """The share of a signalling rate (bytes/s) that line coding leaves."""
    return _CODING.get(int(rate / 1e6), 1.0)

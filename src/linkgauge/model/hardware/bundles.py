"""How parallel links of an accelerator's own fabric, such as NVLink, are added up by remote end."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from .inventory import FabricLink

_CODING = {25781: 64 / 66, 26562: 514 / 544 * 256 / 257, 53125: 514 / 544 * 256 / 257}
"""The share of a link's bytes that remains after line coding, by signalling rate in MB/s. NVLink 2
and 3 use 64b/66b. NVLink 4 and 5 use the Reed-Solomon code and 256b/257b (as 100G and 200G Ethernet
lanes do, IEEE 802.3 clauses 91 and 119). The result is the 25 or 50 GB/s of NVIDIA's data sheets.
Rates that are not listed count as net of coding."""


_NVLINK = {19531: 1, 20000: 1, 25781: 2, 14062: 3, 25000: 3, 26562: 4, 53125: 5}
"""The generations of NVLink by signalling rate in MB/s, for libraries that report no version."""


class LinkBundle(msgspec.Struct, frozen=True):
    """The parallel links of an accelerator to one remote end. `count` is the number of active
    links, and `rate` their bytes/s after line coding. `all` is the number of all links, and
    `nominal` their bytes/s before line coding. `each` is one link's signalling rate in bytes/s."""

    count: int
    all: int
    rate: float
    kind: str
    each: float
    nominal: float
    version: str | None = None

    @property
    def nvlink(self) -> int | None:
        """The generation of NVLink, such as 4; 0 if unknown, None if the links are not NVLink."""
        if not self.kind.lower().startswith("nvlink"):
            return None
        known = (self.version or "").partition(".")[0]
        return int(known) if known.isdecimal() else _NVLINK.get(int(self.each / 1e6), 0)

    @staticmethod
    def joined(many: Sequence[LinkBundle], idle: int = 0) -> LinkBundle:
        return LinkBundle(
            sum(bundle.count for bundle in many),
            sum(bundle.all for bundle in many) + idle,
            sum(bundle.rate for bundle in many),
            many[0].kind,
            many[0].each,
            sum(bundle.nominal for bundle in many),
            many[0].version,
        )


def bundles(links: Iterable[FabricLink]) -> dict[str | None, LinkBundle]:
    """Adds up the links to each remote end; the key None stands for unknown ends. Links that are
    down count only in `all` and `nominal`."""
    found: dict[str | None, LinkBundle] = {}
    for link in links:
        remote = None if link.remote == "gpu" else link.remote  # which of several is unknown
        known = found.get(remote, LinkBundle(0, 0, 0.0, link.kind, 0.0, 0.0))
        each, rate, count = known.each, known.rate, known.count
        if link.active is not False:
            each = link.rate or 0.0
            rate, count = rate + each * coding(each), count + 1
        nominal = known.nominal + (link.rate or 0.0)
        found[remote] = LinkBundle(
            count, known.all + 1, rate, link.kind, each, nominal, link.version
        )
    return found


def coding(rate: float) -> float:
    """Returns the share of a signalling rate (in bytes/s) that line coding leaves for data."""
    return _CODING.get(int(rate / 1e6), 1.0)

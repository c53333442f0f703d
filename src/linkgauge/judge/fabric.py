"""Paths over the accelerators' own links: NVLink and the like."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache

import msgspec

from linkgauge.model.inventory import Accelerator, FabricLink

from .path import Path, Segment, Unknown, Use, figure

PACKET = 16 / 18
"""Share of an NVLink that is payload: a packet of 256 bytes is 16 flits of 16 bytes behind a header
and an address flit. Source: D. Foley and J. Danskin, Ultra-Performance Pascal GPU and NVLink
Interconnect, IEEE Micro 37 (2017). Two H200s reach 0.98 to 0.99 of it by copy engine and 0.93 by
kernel."""

_CODING = {25781: 64 / 66, 26562: 514 / 544 * 256 / 257, 53125: 514 / 544 * 256 / 257}
"""Share that line coding leaves, by the signalling rate in MB/s: 64b/66b of NVLink 2 and 3, the
Reed-Solomon code and 256b/257b of NVLink 4 and 5 (as 100G and 200G Ethernet lanes, IEEE 802.3
clauses 91 and 119). What is left is the 25 or 50 GB/s of NVIDIA's data sheets; a rate that is not
listed is taken as such already."""


class _Bundle(msgspec.Struct, frozen=True):
    """Links side by side: `count` of `all` are active, and `rate` is what they carry together,
    after line coding."""

    count: int
    all: int
    rate: float
    kind: str
    each: float

    @property
    def shown(self) -> str:
        share = _coding(self.each)
        coded = "" if share == 1 else f" × {share:.4g}"
        of = "" if self.count == self.all else f" of {self.all}"
        return f"{self.count}{of} {self.kind} × {figure(self.each)}{coded}"

    @property
    def is_nvlink(self) -> bool:
        return self.kind.lower().startswith("nvlink")


class FabricPaths:
    """Paths over fabrics of one machine."""

    def __init__(self, accelerators: Iterable[Accelerator]) -> None:
        self._links: dict[str, tuple[FabricLink, ...]] = {a.memory: a.links for a in accelerators}
        self._bundles = {name: _bundles(links) for name, links in self._links.items()}
        self.path = cache(self._find_path)

    def serves(self, begin: str, end: str) -> bool:
        """Whether traffic between these two goes over a fabric: devices that have links, or a
        device with a link to this host node."""
        if any(end in self._bundles.get(a, {}) for a, end in ((begin, end), (end, begin))):
            return True
        return all(self._links.get(name) for name in (begin, end))

    def knows(self, device: str) -> bool:
        """Whether a library told of this device's links."""
        return device in self._links

    def _find_path(self, begin: str, end: str, part: float) -> Path:
        """Payload goes from one place to another, of which at least one is a device. Raises
        Unknown."""
        ours, theirs = self._bundles.get(begin, {}), self._bundles.get(end, {})
        direct = ours.get(end) or theirs.get(begin)
        if direct is not None:
            return _path([(f"{begin}>{end}", direct)], part)
        switches = [name for name in ours if name in theirs and not self._is_memory(name)]
        if not switches:
            raise Unknown("no link was found that joins the two directly or over a switch")
        out, into = _joined(ours, switches), _joined(theirs, switches)
        crossed = _path([(f"{begin}>switch", out), (f"switch>{end}", into)], part)
        if any(None in switches and end[None].count for end in (ours, theirs)):
            return crossed + Path(doubts=("nothing tells where their links lead",))
        return crossed

    def _is_memory(self, name: str | None) -> bool:
        """Devices and nodes pass traffic on for others on few machines, and nothing tells on
        which."""
        if name is None:
            return False
        return name in self._links or name.startswith(("host:", "gpu ", "cpu"))


def _path(crossed: Iterable[tuple[str, _Bundle]], part: float) -> Path:
    uses = []
    loose: tuple[str, ...] = ()
    for name, bundle in crossed:
        if not bundle.count:
            raise Unknown(f"no {bundle.kind} of {name.replace('>', ' to ')} is active")
        if not bundle.rate:
            raise Unknown(f"the rate of {bundle.kind} is unknown")
        share, why = PACKET, "packets of 16 in 18 flits"
        if not bundle.is_nvlink:
            share, why = 1.0, f"nothing tells what {bundle.kind} adds to payload"
            loose = (why,)
        segment = Segment(name, bundle.rate, bundle.shown)
        uses.append(Use(segment, part, part / share, why))
    return Path(tuple(uses), loose=loose)


def _bundles(links: Iterable[FabricLink]) -> dict[str | None, _Bundle]:
    """Active links by where they lead; links that are down are counted as none."""
    found: dict[str | None, _Bundle] = {}
    for link in links:
        remote = None if link.remote == "gpu" else link.remote  # of several, nothing tells which
        known = found.get(remote, _Bundle(0, 0, 0.0, link.kind, 0.0))
        each, rate, count = known.each, known.rate, known.count
        if link.active is not False:
            each = link.rate or 0.0
            rate, count = rate + each * _coding(each), count + 1
        found[remote] = _Bundle(count, known.all + 1, rate, link.kind, each)
    return found


def _joined(bundles: Mapping[str | None, _Bundle], switches: Iterable[str | None]) -> _Bundle:
    """All links to these switches as one, beside those that are down: nothing tells where these
    would lead."""
    many = [bundles[name] for name in switches]
    down = bundles.get(None)
    idle = down.all if down and not down.count and down not in many else 0
    return _Bundle(
        sum(bundle.count for bundle in many),
        sum(bundle.all for bundle in many) + idle,
        sum(bundle.rate for bundle in many),
        many[0].kind,
        many[0].each,
    )


def _coding(rate: float) -> float:
    return _CODING.get(int(rate / 1e6), 1.0)

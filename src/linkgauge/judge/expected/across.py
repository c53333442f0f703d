"""Computes the bandwidth of a collective over several hosts. It is limited by the network adapters
of each host, or by the exchange between the accelerators within a host."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

from linkgauge.model.documents.scaling import BusbwBound
from linkgauge.model.grouped import grouped
from linkgauge.model.hardware.machine import Machine
from linkgauge.model.hardware.pcie import link_rate
from linkgauge.model.notation import parse_memory
from linkgauge.model.notes import Note, Remark
from linkgauge.model.operations.collective import Collective
from linkgauge.model.units import count_of

from .dram import Ceilings
from .exchange_rates import ExchangeRates
from .healthy import Bounds, bounds_of
from .link_rates import LOOSE, figure
from .routes import Paths

REACHED = 0.96
"""The share of its ports' rate that a library's transfers reach: 48 of 50 GB/s, 24 of 25, 12 of
12.5 (NVIDIA/nccl-tests issues 119 and 290)."""
_SLOT = 0.86
"""The share of a PCIe link's rate that is payload (docs/expect-formulas.md)."""
_ALGORITHM = "NCCL_ALGO="
_TREES = ("tree", "nvlstree")
_RINGS = ("all_reduce", "all_gather", "reduce_scatter", "broadcast", "reduce")
"""The collectives of which each byte that counts crosses the network once, if they use rings."""


class Carried(NamedTuple):
    """The total rate of one host's network adapters in bytes/s, and how it was computed."""

    rate: float
    because: str


def carried_by(machine: Machine, hosts: int = 1) -> Carried | None:
    """Returns the total rate of the active network ports of one host, or None if it is unknown.
    Counts only ports with the most frequent rate. `machine` has the ports of `hosts` hosts."""
    ports = [one for one in machine.known.adapters if one.state in (None, "active") and one.rate]
    if not ports:
        return None
    rate = Counter(one.rate for one in ports).most_common(1)[0][0] or 0.0
    cards = grouped(((one.pci or one.name).rpartition(".")[0] or one.name, one) for one in ports)
    total, slots, count = 0.0, dict[str, None](), 0
    for own in cards.values():
        line, here = machine.pci_line(own[0].pci or ""), sum(one.rate == rate for one in own)
        carries, count = rate * here, count + here
        slot = line[0].link if line else None
        if slot is not None and slot.speed and slot.width:
            most = _SLOT * link_rate(slot.speed, slot.width) / REACHED
            if most < carries:
                slots[f", in a slot of PCIe {slot.speed:g} GT/s x{slot.width}"] = None
            carries = min(carries, most)
        total += carries
    count, total = count // hosts, total / hosts
    because = f"{count_of(count, 'adapter')} of {8 * rate / 1e9:.4g} Gb/s a host{''.join(slots)} "
    return Carried(total, f"{because}{'carries' if count == 1 else 'carry'} {figure(total)}")


def through(carried: Carried, machine: Machine, devices: Sequence[str]) -> Carried:
    """Limits the adapters' rate to the sum of the devices' PCIe links, if all are known."""
    lines = [machine.pci_line(machine.addresses.get(one) or "") for one in devices]
    links = [line[0].link for line in lines if line]
    rates = [link_rate(one.speed, one.width) for one in links if one and one.speed and one.width]
    most = _SLOT * sum(rates) / REACHED
    if len(rates) < len(devices) or most >= carried.rate:
        return carried
    those = "link carries" if len(devices) == 1 else "links carry"
    with_ = f"{count_of(len(devices), 'device')}, whose own PCIe {those} {figure(most)}"
    return Carried(most, f"{carried.because}, but each takes part with {with_}")


class Across(NamedTuple):
    bound: BusbwBound
    bounds: Bounds


def across(
    own: BusbwBound, work: Collective, hosts: int, each: int, carried: Carried, algorithm: str = ""
) -> Across | None:
    """Returns the bandwidth of a collective over `hosts` hosts with `each` devices, or None if its
    traffic is unknown. `own` is the bandwidth within a host. If `algorithm` is empty, an all-reduce
    of two hosts may use a tree or a ring, and the bounds allow either."""
    ranks, network = hosts * each, carried.rate * REACHED
    moved, ring = 1.0, ""
    if work.collective == "alltoall":
        moved, ring = (ranks - 1) / (ranks - each) / each, " between all devices"
    elif work.collective not in _RINGS:
        return None
    inside = own.achievable if each > 1 else None
    rings = min(network * moved, inside or network * moved)
    trees = 0.0
    if hosts == 2 and work.collective == "all_reduce" and each > 1 and algorithm != "ring":
        trees = min(2 * (ranks - 1) / ranks * network, inside or 0.0)
    is_tree = trees > rings and (own.reduced is not None or algorithm in _TREES)
    rate = trees if is_tree else rings
    because = f"{carried.because} between hosts{ring}, {REACHED:.0%} of it with the protocol"
    if is_tree:
        because += "; two hosts reduce by a tree, which sends each byte once"
    if rate == inside:
        because += f"; the devices of a host exchange no more: {own.because}"
    elif each > 1 and inside is None:
        because += "; what those of a host exchange is unknown"
    bound = BusbwBound(max(rate, trees) / REACHED, rate, because, least=rings)
    known = bounds_of(work.collective, "nvls" if is_tree else "ring", ranks, hosts)
    if is_tree and not algorithm:
        part = rings / rate
        known = known._replace(low=known.low * part, perhaps=known.perhaps * part)
    if each > 1 and inside is None:
        known = known._replace(low=LOOSE * LOOSE, perhaps=LOOSE)
    return Across(bound, known)


class AcrossHosts(ExchangeRates):
    """Computes the rates of a collective over several hosts with equally many devices each."""

    def __init__(self, paths: Paths, work: Collective, notes: Sequence[Note] = ()) -> None:
        super().__init__(paths, work, notes)
        self._hosts = {rank.memory: rank.host for rank in paths.machine.ranks}
        self._alone = paths.machine.on(paths.machine.ranks[0].host)
        self._own = ExchangeRates(Paths(self._alone, Ceilings()), work, notes)
        self._carried = carried_by(self._alone)
        remarks = (one.text.partition(_ALGORITHM) for one in notes if isinstance(one, Remark))
        algorithms = (after for before, sign, after in remarks if sign and not before)
        self._algorithm = next(algorithms, "").lower()
        self._limits = cache(self._find_limits)

    def _find_limits(self, devices: tuple[str, ...]) -> Across | None:
        each = Counter(self._hosts.get(device) for device in devices)
        if self._carried is None or len(each) < 2 or len({*each.values()}) > 1:
            return None
        host = self._hosts.get(devices[0])
        own = [one for one in devices if self._hosts.get(one) == host]
        names = tuple(str(parse_memory(one).unranked) for one in own)
        carried = through(self._carried, self._alone, names)
        bound = self._own.bound(names)
        return across(bound, self._work, len(each), each[host], carried, self._algorithm)

    def _bound(self, devices: tuple[str, ...]) -> BusbwBound:
        if (limits := self._limits(devices)) is not None:
            return limits.bound
        return BusbwBound(because="unknown: what the adapters of each host carry is unknown")

    def bounds(self, devices: tuple[str, ...]) -> Bounds:
        limits = self._limits(devices)
        return limits.bounds if limits is not None else Bounds(LOOSE, LOOSE, 0, 0)


def rates_of(paths: Paths, work: Collective, notes: Sequence[Note] = ()) -> ExchangeRates:
    several = len({rank.host for rank in paths.machine.ranks}) > 1
    return (AcrossHosts if several else ExchangeRates)(paths, work, notes)

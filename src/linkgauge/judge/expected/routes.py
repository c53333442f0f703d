"""Finds a transfer's path in a machine or between hosts: the memories and links it uses."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import Literal

from linkgauge.model.hardware.bundles import LinkBundle
from linkgauge.model.hardware.inventory import Interface, PciFunction
from linkgauge.model.hardware.machine import Machine
from linkgauge.model.hardware.map import Crossing
from linkgauge.model.hardware.part import Part, is_node
from linkgauge.model.hardware.wiring import Wire
from linkgauge.model.memory import Memory
from linkgauge.model.ranks import RankInterface, nic_ends, nic_problem
from linkgauge.model.transfer import NIC_ENGINES, Access, Transfer

from .dram import Ceilings, HostMemory
from .link_rates import ExpectedPath, Trained, Unknown, Use, fabric_path, figure, pcie_path

MEMORY_SHARE, COPIED_SHARE = 0.9, 0.85
"""The share of the peak rate of an accelerator's memory (clock × width) that kernels and copy
engines within it reach; refresh and read-write turnarounds take the rest. Kernels reach 0.92 on
GB200 (7.35 of 8 TB/s, Azure HPC blog, "Azure's ND GB200 v6"), copy engines 0.85 on two H200s
(docs/benchmarks.md) and 0.83 on GB200."""
_COPYING = ("how fast a copy engine is within a device is not published",)


class Paths:
    def __init__(self, machine: Machine, ceilings: Ceilings) -> None:
        self.machine = machine
        self.host = HostMemory(machine, ceilings)
        self._memory = cache(self._find_memory)
        self._joined = cache(self._find_joined)
        self._fabric = cache(fabric_path)

    def of(self, transfer: Transfer, size: int, trained: Trained, *, alone: bool) -> ExpectedPath:
        """Returns the path of a transfer. `alone` means that no other device or node takes part.
        Raises Unknown if the path is unknown."""
        if transfer.engine.kind == "cpu":
            return self.host.by_threads(transfer, size)
        if transfer.engine.kind in NIC_ENGINES:
            return network_path(self.machine, transfer)
        by_ce = transfer.engine.kind == "ce"
        within = by_ce and transfer.source.place == transfer.destination.place
        share = COPIED_SHARE if within else MEMORY_SHARE
        path = ExpectedPath(loose=_COPYING if within else ())
        for memory in transfer.memories:
            path += self._memory(memory, alone, share)
        kernel = transfer.engine.kind == "sm"
        for begin, end, access, part in transfer.legs():
            bundles, links, beside = self._joined(begin, end)
            for ends, bundle in bundles.items():
                path += self._fabric(ends, bundle, part, access, kernel=kernel)
            if links:
                way = links[::-1] if access == "read" else links
                path += pcie_path(way, access, part, kernel, trained)
            path += beside
        if by_ce and not transfer.engine.owner.is_device:
            path += ExpectedPath(doubts=("how fast the driver passes it on is unknown",))
        if not path.uses:
            raise Unknown(f"the rate of the memory of {transfer.engine.owner} is unknown")
        return path

    def _find_memory(self, memory: Memory, alone: bool, share: float) -> ExpectedPath:
        place = str(memory.place)
        device = self.machine.by_memory.get(place)
        if device is not None and device.shares_host_memory:
            raise Unknown(f"{place} uses the host's memory")
        if memory.is_host:
            if memory.kind in ("pageable", "managed"):
                raise Unknown(f"how the driver moves {memory.kind} memory is unknown")
            return self.host.reached(memory.place, alone=alone)
        own = self.machine.accelerators.get(place)
        if own is None or not own.memory_rate:
            return ExpectedPath()
        why = f"{share:.0%} of memory bandwidth is reachable"
        use = Use(place, own.memory_rate, "memory", 1.0, 1.0 / share, why)
        return ExpectedPath((use,))

    def _find_joined(
        self, begin: Memory, end: Memory
    ) -> tuple[Mapping[tuple[str, str], LinkBundle], Sequence[tuple[Wire, str]], ExpectedPath]:
        """Returns the fabric links between two memories by their ends, the PCIe links with
        directions, and doubts about them with the host nodes whose memory they reach."""
        here, there = str(begin), str(end)
        wiring = self.machine.wiring
        crossed, bundles = wiring.route(here, there), wiring.bundles(here, there)
        fabric = [a.links for a in map(self.machine.accelerators.get, (here, there)) if a]
        if len(fabric) == 2 and all(fabric) and not bundles:
            raise Unknown("no link of a fabric joins the two, directly or through a switch")
        if not (bundles or begin.is_host or end.is_host) and len(fabric) < 2:
            raise Unknown(f"whether links of their own join {here} and {there} is unknown")
        if crossed is None:
            raise Unknown(f"the link between {here} and {there} is unknown")
        links = lanes_of(crossed)
        for wire, _ in links:
            if wire.device and wire.device not in self.machine.addresses:
                raise Unknown(f"the PCI address of {wire.device} is unknown")
        nodes = [place.index or 0 for place in (begin, end) if place.is_host]
        by: Literal["PCIe", "fabric"] = "fabric" if bundles else "PCIe"
        doubts = ("where their links lead is unknown",) if wiring.is_unsure(here, there) else ()
        beside = ExpectedPath(
            doubts=(*doubts, *self._doubts(crossed, nodes)),
            meets=tuple((node, by) for node in nodes),
        )
        return bundles, links, beside

    def _doubts(
        self, crossed: Sequence[tuple[Wire, Crossing]], nodes: Sequence[int]
    ) -> Iterator[str]:
        if nodes and any(wire.kind == "socket" for wire, _ in crossed):
            own = [wire.lower for wire, _ in crossed if wire.device]
            if all(function and function.numa_node is not None for function in own):
                yield "the link between the device's node and this one is unknown"
        if not nodes and any(is_node(crossing.end) for _, crossing in crossed):
            hidden = "the virtual machine hides what lies between them"
            bridge = "the route crosses the host bridge, whose rate is unknown"
            yield hidden if self.machine.is_virtual else bridge


def lanes_of(crossed: Iterable[tuple[Wire, Crossing]]) -> list[tuple[Wire, str]]:
    """Returns the PCIe links of a route with their directions, up to the host or down."""
    return [
        (w, "up" if crossing.forward else "down") for w, crossing in crossed if w.kind == "pcie"
    ]


_FRAME = 38
"""The bytes of Ethernet for each frame: preamble 8, header 14, checksum 4, gap 12 (IEEE 802.3)."""
_IP_TCP, _TIMESTAMPS = 40, 12
"""The bytes of headers within a frame's MTU: IPv4 and TCP (RFC 791, 9293), and the TCP option that
Linux sends (RFC 7323)."""
_ROCE = 20 + 8 + 12 + 4
"""The bytes of headers of RoCE v2 within the MTU: IPv4, UDP, the base transport header, its
checksum (InfiniBand Architecture Specification, annex A17)."""
_INFINIBAND = 8 + 12 + 4 + 2
"""The bytes of InfiniBand for each packet: local route header, base transport header, two checksums
(volume 1, 5.2)."""
_PAYLOADS = (4096, 2048, 1024, 512, 256)
"""The bytes of payload that a packet of RDMA may have: its MTU."""
_USUAL = 1500


def network_path(machine: Machine, transfer: Transfer) -> ExpectedPath:
    """Returns the path between two hosts. Raises Unknown if an interface or its rate is unknown."""
    ranks = {rank.number: rank for rank in machine.ranks}
    if not ranks:
        raise Unknown("which interfaces the two ends have is unknown")
    if (why := nic_problem(transfer, ranks)) is not None:
        raise Unknown(why)
    ends, kind = nic_ends(transfer), transfer.engine.kind
    one, other = (ranks[end.rank] for end in ends)
    if one.host == other.host:
        raise Unknown("both interfaces are of one host: what they send each other may not leave it")
    path = ExpectedPath()
    accesses: tuple[Access, Access] = ("read", "write")
    for end, access in zip(ends, accesses, strict=True):
        nic = ranks[end.rank].nics[end.nic]
        by_rdma = kind == "rdma" or (kind == "ucx" and nic.rdma is not None)
        path += ExpectedPath((_use(end, nic, access, by_rdma=by_rdma),))
        if ranks[end.rank].host == machine.host.hostname:
            path += _slot(machine, nic, access)
    loose = () if kind == "rdma" else ("how fast the hosts' CPUs pass it on varies",)
    return path + ExpectedPath(loose=loose)


def _use(end: RankInterface, nic: Interface, access: Access, *, by_rdma: bool) -> Use:
    if nic.speed is None:
        raise Unknown(f"the rate of {nic.name} of rank {end.rank} is unknown")
    if nic.pci is None and nic.rdma is None:  # veth, say, which reports 10 Gb/s of nothing
        is_virtual = f"{nic.name} of rank {end.rank} is virtual"
        raise Unknown(f"{is_virtual}: the rate that it reports is of no link")
    payload, added, what = _packets(nic, by_rdma=by_rdma)
    shown = f"{nic.kind or 'network'} {figure(nic.speed)}"
    why, way = f"{what} of {payload} B + {added} B", "out" if access == "read" else "in"
    return Use(str(end.place), nic.speed, shown, 1.0, 1 + added / payload, why, way)


def _packets(nic: Interface, *, by_rdma: bool) -> tuple[int, int, str]:
    mtu = nic.mtu or _USUAL
    if by_rdma and nic.kind == "InfiniBand":
        return _PAYLOADS[0], _INFINIBAND, "packets of InfiniBand"
    if by_rdma:
        payload = next((size for size in _PAYLOADS if size + _ROCE <= mtu), _PAYLOADS[-1])
        return payload, _ROCE + _FRAME, "packets of RoCE"
    within = _IP_TCP + _TIMESTAMPS
    return mtu - within, within + _FRAME, "segments of TCP"


def _slot(machine: Machine, nic: Interface, access: Access) -> ExpectedPath:
    functions = machine.pci_line(nic.pci or "")
    if not functions or functions[0].link.speed is None:
        return ExpectedPath()
    direction = "down" if access == "read" else "up"
    return pcie_path([(wire, direction) for wire in _wires(functions)], access, 1.0, False, {})


def _wires(line: tuple[PciFunction, ...]) -> Iterator[Wire]:
    for lower, upper in zip(line, (*line[1:], None), strict=True):
        if lower.port in ("endpoint", "upstream port", None):
            part = Part.pcie_link(lower.address, lower.address)
            above = upper.address if upper else "host"
            yield Wire(part.name, lower.address, above, "pcie", part=part, lower=lower, upper=upper)

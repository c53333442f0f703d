"""Computes the rate of a network interface between two hosts: the rate of its link less the
overhead of each packet, limited by its slot. docs/expect-formulas.md has the sources."""

from __future__ import annotations

from collections.abc import Iterator

from linkgauge.model.hardware.inventory import Interface, PciFunction
from linkgauge.model.hardware.machine import Machine
from linkgauge.model.hardware.part import Part
from linkgauge.model.hardware.wiring import Wire
from linkgauge.model.ranks import RankInterface, nic_ends, nic_problem
from linkgauge.model.transfer import Access, Transfer

from .link_rates import ExpectedPath, Unknown, Use, figure, pcie_path

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
"""The MTU of Ethernet if none is known."""


def network_path(machine: Machine, transfer: Transfer) -> ExpectedPath:
    """Returns the path of a transfer between two ranks. Raises Unknown if an interface's rate is
    unknown."""
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
        raise Unknown(
            f"{nic.name} of rank {end.rank} is virtual: the rate that it reports is of no link"
        )
    payload, added, what = _packets(nic, by_rdma=by_rdma)
    shown = f"{nic.kind or 'network'} {figure(nic.speed)}"
    why = f"{what} of {payload} B + {added} B"
    cost = 1 + added / payload
    way = "out" if access == "read" else "in"
    return Use(str(end.place), nic.speed, shown, 1.0, cost, why, way)


def _packets(nic: Interface, *, by_rdma: bool) -> tuple[int, int, str]:
    """Returns three facts about an interface's packets: the bytes of payload, the bytes added to
    the payload, and the name of the packets."""
    mtu = nic.mtu or _USUAL
    if by_rdma and nic.kind == "InfiniBand":
        return _PAYLOADS[0], _INFINIBAND, "packets of InfiniBand"
    if by_rdma:
        payload = next((size for size in _PAYLOADS if size + _ROCE <= mtu), _PAYLOADS[-1])
        return payload, _ROCE + _FRAME, "packets of RoCE"
    within = _IP_TCP + _TIMESTAMPS
    return mtu - within, within + _FRAME, "segments of TCP"


def _slot(machine: Machine, nic: Interface, access: Access) -> ExpectedPath:
    """Returns the path over the PCIe links above an interface, as far as they are known."""
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

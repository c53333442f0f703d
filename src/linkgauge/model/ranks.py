"""The ranks of a run: processes that measure together."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from typing import NamedTuple

import msgspec

from linkgauge.model.hardware.inventory import Interface
from linkgauge.model.shareable import Facts, HostName, MemoryName, Product

from .errors import LinkgaugeError, OutcomeKind
from .memory import NIC, Memory
from .transfer import Transfer


class Rank(msgspec.Struct, frozen=True):
    """A process of a run that several processes measure.

    number: The rank's number, from 0.
    host: The name of its host.
    process: Its process id.
    memory: The memory that the rank measures with, such as `cuda:0`; null until known.
    model: The model of its accelerator; null until known, or without an accelerator.
    ahead: Seconds that its monotonic clock is ahead of rank 0's; null if they were not compared.
    unsure: The largest error of `ahead`, in seconds; null if the clocks were not compared.
    nics: The network interfaces of its machine, if the run measures interfaces."""

    number: int
    host: HostName
    process: int
    memory: MemoryName | None = None
    model: Product | None = None
    ahead: float | None = None
    unsure: float | None = None
    nics: tuple[Interface, ...] = ()

    def __str__(self) -> str:
        where = ", ".join(filter(None, (self.host, f"process {self.process}", self.memory)))
        return f"rank {self.number} ({where})"


class Oversubscription(msgspec.Struct, frozen=True):
    """A machine with more ranks than CPUs that these ranks may use.

    host: The machine's name.
    ranks: The number of ranks.
    cpus: The number of CPUs."""

    host: HostName
    ranks: int
    cpus: int

    def __str__(self) -> str:
        cpus = "1 CPU" if self.cpus == 1 else f"{self.cpus} CPUs"
        return f"{self.ranks} ranks share {cpus} of {self.host}"


class LostRank(msgspec.Struct, frozen=True):
    """The rank that ended a run because its process ended or stopped answering.

    number: The rank's number.
    how: How the rank was lost, as a verb phrase such as `ended`.
    doing: What the run was doing at that time.
    host: The name of its host; null if unknown.
    process: Its process id; null if unknown.
    memory: The name of its memory, such as `cuda:0`; null if unknown."""

    number: int
    how: Facts
    doing: Facts
    host: HostName | None = None
    process: int | None = None
    memory: MemoryName | None = None

    def __str__(self) -> str:
        process = None if self.process is None else f"process {self.process}"
        where = ", ".join(filter(None, (self.host, process, self.memory)))
        named = f"rank {self.number} ({where})" if where else f"rank {self.number}"
        return f"{named} {self.how} while {self.doing}"


def lost_rank(number: int, how: str, doing: str, known: Rank | None = None) -> LostRank:
    if known is None:
        return LostRank(number, how, doing)
    return LostRank(number, how, doing, known.host, known.process, known.memory)


class RankLost(LinkgaugeError):
    def __init__(self, lost: LostRank, kind: OutcomeKind = "crash") -> None:
        super().__init__(str(lost))
        self.lost = lost
        self.kind = kind


# Which network interfaces of two ranks a transfer goes over, and why it cannot.


class RankInterface(NamedTuple):
    rank: int
    nic: int

    @property
    def place(self) -> Memory:
        return Memory(NIC, self.nic, rank=self.rank)


def nic_ends(transfer: Transfer) -> tuple[RankInterface, RankInterface]:
    """Returns the interfaces of source and destination, which have the same number by default."""
    engine = transfer.engine
    own = RankInterface(engine.owner.rank or 0, engine.owner.index or 0)
    source, destination = transfer.source.rank or 0, transfer.destination.rank or 0
    far = own.nic if engine.far is None else engine.far
    if own.rank == source:
        return own, RankInterface(destination, far)
    return RankInterface(source, far), own


def nic_problem(transfer: Transfer, ranks: Mapping[int, Rank]) -> str | None:
    ends = nic_ends(transfer)
    for end in ends:
        if end.rank not in ranks:
            return f"there is no rank {end.rank}: the ranks are 0 to {len(ranks) - 1}"
        problem = _end_problem(ranks[end.rank], end.nic, transfer.engine.kind)
        if problem is not None:
            return problem
    hosts = [ranks[end.rank].host for end in ends]
    for end in ends:
        nic = ranks[end.rank].nics[end.nic]
        if nic.is_loopback and hosts[0] != hosts[1]:
            where = f"nic:{end.nic} ({nic.name}) of {_named(ranks[end.rank])}"
            return f"{where} is a loopback: it does not reach {hosts[0]} from {hosts[1]}"
    return None


def _end_problem(rank: Rank, number: int, kind: str) -> str | None:
    if number >= len(rank.nics):
        there = ", ".join(f"nic:{at} ({nic.name})" for at, nic in enumerate(rank.nics)) or "none"
        return f"{_named(rank)} has no nic:{number}: there are {there}"
    nic = rank.nics[number]
    where = f"nic:{number} ({nic.name}) of {_named(rank)}"
    if nic.up is False:
        return f"{where} is down: ip link set {nic.name} up"
    if kind == "rdma" and nic.rdma is None:
        return f"{where} has no device with RDMA"
    if kind != "rdma" and not nic.addresses:
        return f"{where} has no IP address"
    return None


def _named(rank: Rank) -> str:
    return f"rank {rank.number} ({rank.host})"


def rdma_nics(rank: Rank) -> tuple[int, ...]:
    return tuple(
        at for at, nic in enumerate(rank.nics) if nic.up is not False and nic.rdma is not None
    )


def able_nics(rank: Rank, ranks: Collection[Rank]) -> tuple[int, ...]:
    """Returns the indices of the interfaces that may reach the other ranks: loopback interfaces on
    one machine, else the interfaces whose addresses no other machine has."""
    alone = len({one.host for one in ranks}) == 1
    elsewhere = {
        address
        for one in ranks
        if one.host != rank.host
        for nic in one.nics
        for address in nic.addresses
    }
    return tuple(
        at
        for at, nic in enumerate(rank.nics)
        if nic.up is not False
        and nic.is_loopback == alone
        and nic.addresses
        and not elsewhere & {*nic.addresses}  # container bridges often share addresses
    )


def usual_nic(rank: Rank, able: Collection[int], node: int) -> int | None:
    """Returns the index of the fastest interface in `able`. Of several, prefers one on the NUMA
    node `node`, then the lowest index. Returns None if `able` is empty."""

    def merit(at: int) -> tuple[float, bool, int]:
        nic = rank.nics[at]
        return nic.speed or 0.0, nic.node == node, -at

    return max(able, key=merit, default=None)


def nearest_nic(rank: Rank, able: Collection[int], node: int) -> int | None:
    """Returns the index of the interface with the fewest PCI hops to the rank's GPU, or None."""

    def distance(at: int) -> tuple[float, bool]:
        nic = rank.nics[at]
        return math.inf if nic.steps is None else nic.steps, nic.node != node

    least = min(map(distance, able), default=None)
    return usual_nic(rank, [at for at in able if distance(at) == least], node)

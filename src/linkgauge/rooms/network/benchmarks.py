"""Defines benchmarks of network interfaces between ranks: pairs, and two patterns of TransferBench
1.66. In `nicrings`, all interfaces form rings. In `nica2a`, each interface sends to its group."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import permutations
from typing import ClassVar, NamedTuple

import msgspec

from linkgauge.backends import GPUS
from linkgauge.benchmarks.table import FLAG_BYTES, DeviceSet, Sweep
from linkgauge.model.memory import NETWORK, NIC, Memory
from linkgauge.model.notation import parse_memory
from linkgauge.model.operations.operation import OperationName, OutsideOperation, named
from linkgauge.model.ranks import Rank, able_nics, nearest_nic, rdma_nics, usual_nic
from linkgauge.model.transfer import Benchmark, Cell, Engine, EngineKind, Report, Transfer
from linkgauge.model.units import BANDWIDTH, LATENCY

SIZE = 64 << 20
"""The default bytes of a transfer, which take 54 ms on a network of 10 Gb/s."""
STREAMS = 8
PERFTEST_BYTES, PERFTEST_FLAG_BYTES = 1 << 20, 8
PERFTEST_MEMORIES = (
    ("host", ""), ("GPU, peermem", " --use_cuda"), ("GPU, dmabuf", " --use_cuda_dmabuf"),
)  # fmt: skip
"""The columns of perftest's tables, and the arguments for the tool."""


class Port(NamedTuple):
    rank: int
    nic: int
    memory: Memory

    @property
    def label(self) -> str:
        return f"{self.rank} {NIC}:{self.nic}"


Pairs = Callable[[DeviceSet], Iterator[tuple[str, str, tuple[tuple[Port, Port], ...]]]]
"""A function that yields the rows and columns of cells, and the ports of each cell."""


class OverNics(Sweep, frozen=True, kw_only=True):
    """Copies between ranks' hosts or, with `gpus`, GPUs. If `at_once`, all copies run together."""

    pairs_of: Pairs
    kind: EngineKind = "tcp"
    report: Report = Report.FIRST
    operation: OperationName = "copy"
    parts: tuple[str, ...] = ()
    streams: int | None = None
    at_once: bool = False
    gpus: bool = False

    on_host: ClassVar[bool] = False
    across_ranks: ClassVar[bool] = True

    @property
    def ranks_with(self) -> tuple[str, ...]:
        return (NETWORK, GPUS) if self.gpus else (NETWORK,)

    @property
    def _by_perftest(self) -> bool:
        return named(self.operation).outside is not None and self.kind == "rdma"

    def over(
        self, fabrics: Sequence[DeviceSet], of_host: Sequence[DeviceSet]
    ) -> Sequence[DeviceSet]:
        chosen = fabrics[:1] or of_host
        if not self.gpus or chosen[0].backend != NETWORK:
            return chosen
        gpus = [device for each in fabrics if each.backend == GPUS for device in each.devices]
        return [msgspec.structs.replace(chosen[0], devices=tuple(gpus))]

    def lay_out(self, fabric: DeviceSet) -> Benchmark:
        reason = self._reason(fabric)
        cells = () if reason else tuple(self._cells(fabric))
        size = None if fabric.sizes else SIZE
        return Benchmark(
            self.name,
            self.title,
            fabric.backend,
            cells,
            self.unit,
            self.parts,
            pairs=not (self.at_once or self._by_perftest),
            rounds=(0,) * len(cells) if self.at_once else (),
            size=self.size if isinstance(self.size, int) else size,
            reason=reason,
        )

    def _reason(self, fabric: DeviceSet) -> str | None:
        if fabric.backend != NETWORK:
            several = f"mpiexec -n 2 linkgauge run {self.name}"
            return f"needs several processes, and no other kind of benchmark beside it: {several}"
        if len(fabric.ranks) < 2:
            return "needs two ranks"
        if self.gpus and len(fabric.devices) < len(fabric.ranks):
            return "needs a GPU in each rank: linkgauge devices says what is missing"
        for rank in fabric.ranks:
            if self.kind == "rdma":
                if not rdma_nics(rank):
                    return f"{rank} has no network interface that is up and has a device with RDMA"
            elif not able_nics(rank, fabric.ranks):
                return f"{rank} has no network interface that is up and has an address of its own"
        return None if any(True for _ in self.pairs_of(fabric)) else "needs more ranks"

    def _cells(self, fabric: DeviceSet) -> Iterator[Cell]:
        for row, column, pairs in self.pairs_of(fabric):
            transfers = tuple(self._transfer(*pair) for pair in pairs)
            if not self._by_perftest:
                yield Cell(row, column, transfers, self.report, operation=self.operation)
            for memory, option in PERFTEST_MEMORIES if self._by_perftest else ():
                work = msgspec.convert(f"{self.operation}{option}", OutsideOperation)
                yield Cell(f"{row}->{column}", memory, transfers, self.report, operation=work)

    def _transfer(self, near: Port, far: Port) -> Transfer:
        owner = Memory(NIC, near.nic, rank=near.rank)
        other = None if far.nic == near.nic else far.nic
        return Transfer(near.memory, far.memory, Engine(owner, self.kind, self.streams, other))


def _usual(fabric: DeviceSet, *, rdma: bool = False, gpus: bool = False) -> list[Port]:
    """Returns each rank's usual interface or, with `gpus`, the interface nearest its GPU."""
    found = []
    for rank, device in zip(fabric.ranks, fabric.devices, strict=True):
        able = rdma_nics(rank) if rdma else able_nics(rank, fabric.ranks)
        nic = (nearest_nic if gpus else usual_nic)(rank, able, device.near)
        found.append(Port(rank.number, nic or 0, parse_memory(device.memory)))
    return found


def _all(fabric: DeviceSet) -> list[list[Port]]:
    able = [able_nics(rank, fabric.ranks) for rank in fabric.ranks]
    count = min(map(len, able))

    def ports(rank: Rank, nics: Sequence[int], memory: str) -> list[Port]:
        return [Port(rank.number, nic, parse_memory(memory)) for nic in nics[:count]]

    memories = (device.memory for device in fabric.devices)
    return [ports(*one) for one in zip(fabric.ranks, able, memories, strict=True)]


def _pairs(
    fabric: DeviceSet, *, rdma: bool = False, gpus: bool = False, both_ways: bool = False
) -> Iterator[tuple[str, str, tuple[tuple[Port, Port], ...]]]:
    for near, far in permutations(_usual(fabric, rdma=rdma, gpus=gpus), 2):
        yield str(near.rank), str(far.rank), ((near, far), (far, near))[: 1 + both_ways]


_rdma_pairs = partial(_pairs, rdma=True)


def ring(step: Callable[[int], int]) -> Pairs:
    """Returns pairs in which each rank sends to the one `step(number of ranks)` ranks after it."""

    def pairs(fabric: DeviceSet) -> Iterator[tuple[str, str, tuple[tuple[Port, Port], ...]]]:
        ports = _all(fabric)
        for at, own in enumerate(ports):
            for near, far in zip(own, ports[(at + step(len(ports))) % len(ports)], strict=True):
                yield f"{near.rank}->{far.rank}", f"{NIC}:{near.nic}", ((near, far),)

    return pairs


def strided(ports: Sequence[Port], stride: int) -> list[Port]:
    return [port for begin in range(stride) for port in ports[begin::stride]]


def all_to_all(*, rails: bool) -> Pairs:
    """Returns pairs of interfaces of different ranks: all pairs or, if `rails` is true, only pairs
    within groups that have one interface of each rank."""

    def pairs(fabric: DeviceSet) -> Iterator[tuple[str, str, tuple[tuple[Port, Port], ...]]]:
        ports = _all(fabric)
        groups = len(ports[0]) if rails else 1
        listed = strided([port for own in ports for port in own], groups)
        size = len(listed) // groups
        for begin in range(0, len(listed), size):
            for near, far in permutations(listed[begin : begin + size], 2):
                if near.rank != far.rank:
                    yield near.label, far.label, ((near, far),)

    return pairs


def _row(name: str, title: str, pairs: Pairs, **more: object) -> OverNics:
    settings = {"unit": BANDWIDTH, "profiles": (), **more}
    prefix = "" if str(more.get("operation")).startswith("ib_") else "nic_"
    return OverNics(f"{prefix}{name}", title, lambda _: iter(()), pairs_of=pairs, **settings)  # type: ignore[arg-type]


OVER_NICS: tuple[OverNics, ...] = (
    _row("tcp", "TCP, one stream, rank(row) -> rank(column)", _pairs),
    _row("tcp_streams", f"TCP, {STREAMS} streams, rank(row) -> rank(column)", _pairs,
         streams=STREAMS),
    _row("tcp_bidirectional", "TCP, rank(row) <-> rank(column)", partial(_pairs, both_ways=True),
         report=Report.SUM, parts=("write1", "write2")),
    _row("tcp_latency", "TCP, half the round trip of a flag, rank(row) -> rank(column)", _pairs,
         report=Report.LATENCY, operation="flag-ping-pong", unit=LATENCY, size=FLAG_BYTES),
    _row("ucx", "UCX's TCP over one interface, rank(row) -> rank(column)", _pairs, kind="ucx"),
    _row("rdma", "RDMA by UCX, rank(row) -> rank(column)", _rdma_pairs, kind="rdma"),
    _row("ucx_gpus", "UCX's TCP over the interface next to each GPU, rank(row) -> rank(column)",
         partial(_pairs, gpus=True), kind="ucx", gpus=True),
    _row("rdma_gpus", "RDMA by UCX over the interface next to each GPU, rank(row) -> rank(column)",
         partial(_pairs, rdma=True, gpus=True), kind="rdma", gpus=True),
    _row("tcp_iperf3", "iperf3, one stream, rank(row) -> rank(column)", _pairs,
         operation="iperf3"),
    _row("tcp_iperf3_streams", f"iperf3, {STREAMS} streams, rank(row) -> rank(column)", _pairs,
         operation="iperf3", streams=STREAMS),
    *(
        _row(f"rdma_{what}_bw", f"ib_{what}_bw (perftest), by memory(column): host or GPU",
             _rdma_pairs, kind="rdma", operation=f"ib_{what}_bw", size=PERFTEST_BYTES)
        for what in ("write", "read")
    ),
    *(
        _row(f"rdma_{what}_lat", f"ib_{what}_lat (perftest), by memory(column): host or GPU",
             _rdma_pairs, kind="rdma", report=Report.LATENCY, operation=f"ib_{what}_lat",
             unit=LATENCY, size=PERFTEST_FLAG_BYTES)
        for what in ("write", "read", "send")
    ),
    _row("tcp_ring", "TCP, each rank -> the next rank(row) over interface(column), all at once",
         ring(lambda _: 1), at_once=True),
    _row("tcp_bisection", "TCP, each rank -> the rank n/2 further on(row) over "
         "interface(column), all at once", ring(lambda ranks: ranks // 2), at_once=True),
    _row("tcp_all_to_all", "TCP, interface(row) -> interface(column) of other ranks, all at once",
         all_to_all(rails=False), at_once=True),
    _row("tcp_rails", "TCP, interface(row) -> the same one(column) of other ranks, all at once",
         all_to_all(rails=True), at_once=True),
)  # fmt: skip

"""Defines the benchmarks of network interfaces between ranks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import permutations
from typing import ClassVar, NamedTuple

import msgspec

from linkgauge.backends import GPUS
from linkgauge.benchmarks.latency import FLAG_BYTES
from linkgauge.benchmarks.table import DeviceSet, Sweep
from linkgauge.model.memory import NETWORK, NIC, Memory
from linkgauge.model.notation import parse_memory
from linkgauge.model.operations.operation import OperationName, OutsideOperation, named
from linkgauge.model.ranks import able_nics, nearest_nic, rdma_nics, usual_nic
from linkgauge.model.transfer import Benchmark, Cell, Engine, EngineKind, Report, Transfer
from linkgauge.model.units import BANDWIDTH, LATENCY

SIZE = 64 << 20
"""The default bytes of a transfer, which take 54 ms on a network of 10 Gb/s."""
STREAMS = 8
PERFTEST_BYTES, PERFTEST_FLAG_BYTES = 1 << 20, 8
PERFTEST_MEMORIES = (
    ("host", ""), ("GPU, peermem", " --use_cuda"), ("GPU, dmabuf", " --use_cuda_dmabuf"),
)  # fmt: skip


class Port(NamedTuple):
    nic: Memory
    memory: Memory


class OverNics(Sweep, frozen=True, kw_only=True):
    """Engines of type `kind` copy between host memories, or between GPU memories if `gpus`, by so
    many `streams`."""

    kind: EngineKind = "tcp"
    report: Report = Report.FIRST
    operation: OperationName = "copy"
    parts: tuple[str, ...] = ()
    streams: int | None = None
    of_pairs: bool = True
    gpus: bool = False

    on_host: ClassVar[bool] = False
    across_ranks: ClassVar[bool] = True

    @property
    def ranks_with(self) -> tuple[str, ...]:
        return (NETWORK, GPUS) if self.gpus else (NETWORK,)

    def over(
        self, fabrics: Sequence[DeviceSet], of_host: Sequence[DeviceSet]
    ) -> Sequence[DeviceSet]:
        """Between GPUs, the devices of a rank are its GPUs."""
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
            pairs=self.of_pairs,
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
        return None

    def _cells(self, fabric: DeviceSet) -> Iterator[Cell]:
        for near, far in permutations(self._usual(fabric), 2):
            ways = ((near, far), (far, near)) if self.parts else ((near, far),)
            transfers = tuple(self._transfer(*way) for way in ways)
            row, column = str(near.nic.rank), str(far.nic.rank)
            if not (named(self.operation).outside and self.kind == "rdma"):
                yield Cell(row, column, transfers, self.report, operation=self.operation)
                continue
            for memory, option in PERFTEST_MEMORIES:
                work = msgspec.convert(f"{self.operation}{option}", OutsideOperation)
                yield Cell(f"{row}->{column}", memory, transfers, self.report, operation=work)

    def _usual(self, fabric: DeviceSet) -> Iterator[Port]:
        """By which a rank usually reaches others; between GPUs the one nearest to the rank's
        GPU."""
        for rank, device in zip(fabric.ranks, fabric.devices, strict=True):
            able = rdma_nics(rank) if self.kind == "rdma" else able_nics(rank, fabric.ranks)
            nic = (nearest_nic if self.gpus else usual_nic)(rank, able, device.near)
            yield Port(Memory(NIC, nic or 0, rank=rank.number), parse_memory(device.memory))

    def _transfer(self, near: Port, far: Port) -> Transfer:
        other = None if far.nic.index == near.nic.index else far.nic.index
        engine = Engine(near.nic, self.kind, self.streams, other)
        return Transfer(near.memory, far.memory, engine)


def _row(name: str, title: str, **more: object) -> OverNics:
    settings = {"unit": BANDWIDTH, "profiles": (), **more}
    prefix = "" if str(more.get("operation")).startswith("ib_") else "nic_"
    return OverNics(f"{prefix}{name}", title, lambda _: iter(()), **settings)  # type: ignore[arg-type]


OVER_NICS: tuple[OverNics, ...] = (
    _row("tcp", "TCP, one stream, rank(row) -> rank(column)"),
    _row("tcp_streams", f"TCP, {STREAMS} streams, rank(row) -> rank(column)", streams=STREAMS),
    _row("tcp_bidirectional", "TCP, rank(row) <-> rank(column)",
         report=Report.SUM, parts=("write1", "write2")),
    _row("tcp_latency", "TCP, flag from rank(row) to rank(column) and back, one way",
         report=Report.LATENCY, operation="flag-ping-pong", unit=LATENCY, size=FLAG_BYTES),
    _row("ucx", "UCX's TCP over one interface, rank(row) -> rank(column)", kind="ucx"),
    _row("rdma", "RDMA by UCX, rank(row) -> rank(column)", kind="rdma"),
    _row("ucx_gpus", "UCX's TCP over the interface next to each GPU, rank(row) -> rank(column)",
         kind="ucx", gpus=True),
    _row("rdma_gpus", "RDMA by UCX over the interface next to each GPU, rank(row) -> rank(column)",
         kind="rdma", gpus=True),
    _row("tcp_iperf3", "iperf3, one stream, rank(row) -> rank(column)", operation="iperf3"),
    _row("tcp_iperf3_streams", f"iperf3, {STREAMS} streams, rank(row) -> rank(column)",
         operation="iperf3", streams=STREAMS),
    *(
        _row(f"rdma_{what}_bw", f"ib_{what}_bw (perftest), host and GPU memory(column)",
             kind="rdma", operation=f"ib_{what}_bw", size=PERFTEST_BYTES, of_pairs=False)
        for what in ("write", "read")
    ),
    *(
        _row(f"rdma_{what}_lat", f"ib_{what}_lat (perftest), host and GPU memory(column)",
             kind="rdma", report=Report.LATENCY, operation=f"ib_{what}_lat",
             unit=LATENCY, size=PERFTEST_FLAG_BYTES, of_pairs=False)
        for what in ("write", "read", "send")
    ),
)  # fmt: skip

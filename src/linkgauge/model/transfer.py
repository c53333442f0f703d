"""Engines, transfers, cells and benchmarks. A transfer's text is `host:0 -> cuda:0 by ce`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from enum import StrEnum
from functools import cached_property
from typing import Annotated, Literal, NamedTuple

import msgspec
from msgspec import Meta
from msgspec.structs import force_setattr

from linkgauge.model.operations.collective import Collective
from linkgauge.model.operations.operation import MATRICES, Operation, OperationName, named
from linkgauge.model.operations.workload import WORK_SAMPLES, Workload
from linkgauge.model.shareable import TRANSFER, PlaceName

from .memory import NIC, NULL, Memory
from .units import BANDWIDTH, Unit

EngineKind = Literal["ce", "sm", "cpu", "rma", "msg", "ccl", "tcp", "ucx", "rdma"]
"""The kinds of engines. On a machine: copy engines, kernels and host threads. Between processes:
MPI's one-sided accesses and messages; a library of collectives, for a rank's part from its send
buffer to its receive buffer; network interfaces; and UCX by any transport that it finds."""
HOST_ENGINES: tuple[EngineKind, ...] = ("cpu", "rma", "msg", "ccl", "ucx")
DEVICE_ENGINES: tuple[EngineKind, ...] = ("ce", "sm", "ccl", "ucx")
NIC_ENGINES: tuple[EngineKind, ...] = ("tcp", "ucx", "rdma")
Access = Literal["read", "write"]
"""How an engine accesses a memory. It reads from memories that it pulls from, and writes to
memories that it pushes to."""
FULL_LOAD = 100
"""Percent of its own rate at which a transfer runs if nothing holds it back."""

CHUNK = 512
"""Bytes that a `<->` kernel moves in one direction before the next chunk goes the other way: 32
lanes of 16 bytes, a warp's access. Odd chunks go source to destination, even chunks back."""


class Engine(msgspec.Struct, frozen=True, gc=False):
    """What carries out a transfer. `count` is the number of threads (None: one on each CPU) or
    streams. `far` is the number of the other end's network interface (None: the owner's number)."""

    owner: Memory
    kind: EngineKind
    count: int | None = None
    far: int | None = None

    def __str__(self) -> str:
        return f"{self.owner}.{self.bare}"

    @property
    def bare(self) -> str:
        bare = self.kind if self.count is None else f"{self.kind}*{self.count}"
        return bare if self.far is None else f"{bare} to {NIC}:{self.far}"

    def seen_from(self, source: Memory) -> str:
        if self.owner.is_nic and self.owner.rank == source.rank:
            return f"{self.owner.unranked}.{self.bare}"
        return str(self)


class Transfer:
    """A transfer of `scale` × the cell's size in bytes, at `load` percent of its full rate. If
    `both_ways` is true, one kernel copies alternate chunks of two buffers in opposite directions,
    as in nvbandwidth's split warps. msgspec encodes it by hooks of `notation`."""

    __slots__ = ("both_ways", "destination", "engine", "load", "scale", "source", "text")
    shared = TRANSFER

    def __init__(
        self,
        source: Memory,
        destination: Memory,
        engine: Engine,
        scale: int = 1,
        both_ways: bool = False,
        load: int = FULL_LOAD,
    ) -> None:
        self.source = source
        self.destination = destination
        self.engine = engine
        self.scale = scale
        self.both_ways = both_ways
        self.load = load
        default = default_owner(source, destination)
        by = engine.bare if engine.owner == default else engine.seen_from(source)
        arrow = "<->" if both_ways else "->"
        times = "" if scale == 1 else f" x{scale}"
        share = "" if load == FULL_LOAD else f" at {load}%"
        self.text = f"{source} {arrow} {destination} by {by}{times}{share}"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Transfer) and self.text == other.text

    def __hash__(self) -> int:
        return hash(self.text)

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return f"Transfer({self.text!r})"

    def by(self, engine: Engine) -> Transfer:
        ends = self.source, self.destination
        return Transfer(*ends, engine, self.scale, self.both_ways, self.load)

    def placed(self, at: Callable[[Memory], Memory]) -> Transfer:
        engine = msgspec.structs.replace(self.engine, owner=at(self.engine.owner))
        ends = at(self.source), at(self.destination)
        return Transfer(*ends, engine, self.scale, self.both_ways, self.load)

    def bytes_each_way(self, size: int) -> int:
        """Returns the payload bytes from source to destination in one loop."""
        moved = self.bytes_moved(size)
        if not self.both_ways:
            return moved
        return moved // (2 * CHUNK) * CHUNK + max(0, moved % (2 * CHUNK) - CHUNK)

    def bytes_moved(self, size: int) -> int:
        """Returns the payload bytes of one loop, in both directions together."""
        return size * self.scale

    def counted(self, size: int, report: Report) -> int:
        """Returns the bytes of a loop that count: of one direction for FIRST and BEST, else all."""
        if not self.memories:
            return 0
        first = report in (Report.FIRST, Report.BEST)
        return self.bytes_each_way(size) if first else self.bytes_moved(size)

    def legs(self) -> Iterator[tuple[Memory, Memory, Access, float]]:
        """Yields a leg for each read or write of another memory by the engine's owner: source,
        destination, access, and fraction of the bytes."""
        owner = self.engine.owner.place
        source, destination = self.source.place, self.destination.place
        ends = [(source, destination, 1.0)]
        if self.both_ways:
            ends = [(source, destination, 0.5), (destination, source, 0.5)]
        for begin, end, part in ends:
            if not begin.is_null and begin != owner:
                yield begin, owner, "read", part
            if not end.is_null and end != owner:
                yield owner, end, "write", part

    @property
    def way(self) -> tuple[str, str]:
        """The names of source and destination; the engine's owner replaces a null memory."""
        owner = self.engine.owner.place
        source = owner if self.source.is_null else self.source
        destination = owner if self.destination.is_null else self.destination
        return str(source), str(destination)

    @property
    def memories(self) -> tuple[Memory, ...]:
        both = self.source, self.destination
        return both if NULL not in both else tuple(m for m in both if not m.is_null)

    @property
    def named(self) -> tuple[Memory, Memory, Memory]:
        return self.source, self.destination, self.engine.owner


def default_owner(source: Memory, destination: Memory) -> Memory:
    """Returns the first end that is a device, else the first end that is not null."""
    for memory in (source, destination):
        if memory.is_device:
            return memory.place
    return (destination if source.is_null else source).place


class Report(StrEnum):
    FIRST = "first"
    """The first transfer in one direction; the others are interference."""
    BEST = "best"
    """The best of a few samples of the first transfer in one direction."""
    SUM = "sum"
    """The sum of the rates of all transfers, each over its own time."""
    TOTAL = "total"
    """The sum of the rates of all transfers while all of them run. If they never all run, all bytes
    ÷ the whole span."""
    SPAN = "span"
    """All bytes ÷ the whole span, from the first start to the last end, as nvbandwidth times it."""
    LATENCY = "latency"
    """Seconds that one step of the first transfer's operation takes."""
    RATE = "rate"
    """Steps of the operation per second, of all transfers together."""
    TIME = "time"
    """Seconds of a collective, averaged over its ranks as nccl-tests does by default."""
    HIDDEN = "hidden"
    """The share of the shorter of two times that is hidden: the kernel's (first transfer) or the
    copies'."""
    ENQUEUE = "enqueue"
    """In files of earlier versions: the latency of an enqueue."""

    @cached_property  # asked for each sample
    def is_latency(self) -> bool:
        return self in _LATENCIES

    @property
    def is_first(self) -> bool:
        return self in _OF_FIRST

    @property
    def is_total(self) -> bool:
        return self in _TOTALS


_LATENCIES = (Report.LATENCY, Report.TIME, Report.ENQUEUE)
_OF_FIRST = (Report.LATENCY, Report.ENQUEUE, Report.FIRST, Report.BEST)
_TOTALS = (Report.TOTAL, Report.SPAN)


class Place(NamedTuple):
    row: PlaceName
    column: PlaceName

    def __str__(self) -> str:
        return f"({self.row}, {self.column})"


class Placed(msgspec.Struct, frozen=True, gc=False):
    """A position in a matrix, with its concurrent transfers.

    row: The label of its row.
    column: The label of its column.
    transfers: The transfers, such as `host:0 -> cuda:0 by ce`.
    report: How the headline figure is computed."""

    row: PlaceName
    column: PlaceName
    transfers: tuple[Transfer, ...]
    report: Report

    @property
    def place(self) -> Place:
        return Place(self.row, self.column)

    @property
    def places(self) -> tuple[Memory, ...]:
        named = (m.place for t in self.transfers for m in (*t.memories, t.engine.owner))
        return tuple(dict.fromkeys(named))

    def __str__(self) -> str:
        return joined(self.transfers)


def joined(transfers: Iterable[Transfer]) -> str:
    """Returns the text of transfers at once, such as `host:0 -> cuda:0 & cuda:0 -> host:0`."""
    return " & ".join(map(str, transfers))


BEST_OF = 5
"""Samples of a cell that reports the best."""
OVERLAP_SAMPLES = 11
"""The samples of a cell that reports a hidden share, which near 0 has no relative precision."""
PRODUCT_SAMPLES, HOST_PRODUCT_SAMPLES = 17, 7
"""The samples of a repetition of products on a device (of 12 ms or more), and on the host."""


class Cell(Placed, frozen=True, gc=False, kw_only=True):
    """A position in a matrix, with the operation that the transfers carry out.

    operation: The operation that the transfers carry out: a name, or a collective.
    workload: The AI workload; null for other operations."""

    operation: OperationName = "copy"
    workload: Workload | None = None

    def __post_init__(self) -> None:
        if self.operation == "copy" and self.report.is_latency:  # older files name no other
            force_setattr(
                self, "operation", "enqueue" if self.report is Report.ENQUEUE else "chase"
            )

    @property
    def does(self) -> Operation:
        return named(self.operation)

    @property
    def runs(self) -> int | None:
        if self.report is Report.BEST:
            return BEST_OF
        if self.report is Report.HIDDEN:
            return OVERLAP_SAMPLES
        if self.workload is not None:
            return WORK_SAMPLES
        if self.does.product is None:
            return None
        on_device = any(transfer.engine.owner.is_device for transfer in self.transfers)
        return PRODUCT_SAMPLES if on_device else HOST_PRODUCT_SAMPLES

    def counted(self, size: int) -> list[int]:
        """Returns for each transfer the bytes of one loop that count for the figure. A broadcast's
        bytes count once, and an operation on arrays counts the bytes of each array."""
        times = self.does.counted_arrays
        counted = [transfer.counted(size, self.report) * times for transfer in self.transfers]
        if self.does.from_one:
            sources = [transfer.source for transfer in self.transfers]
            for at, source in enumerate(sources):
                counted[at] *= sources.index(source) == at
        return counted

    def bytes_reported(self, size: int) -> int:
        """Returns the bytes of a loop that the headline figure, or a collective's algbw, counts."""
        if isinstance(self.operation, Collective):
            ranks = len(self.operation.groups(len(self.transfers))[0])
            return self.operation.bytes_counted(self.transfers[0].bytes_moved(size), ranks)
        counted = self.counted(size)
        return counted[0] if self.report.is_first else sum(counted)

    def buffers(self, size: int) -> Iterator[tuple[Memory, int]]:
        if isinstance(self.operation, Collective):
            yield from self._collective_buffers(self.operation, size)
            return
        if self.does.product is not None:
            yield from ((self.transfers[0].engine.owner, size) for _ in range(MATRICES))
        read = self.does.source_arrays
        for transfer in self.transfers:
            moved = transfer.bytes_moved(size)
            for memory, arrays in ((transfer.source, read), (transfer.destination, 1)):
                if not memory.is_null and not memory.is_cpu:
                    yield memory, moved * arrays

    def _collective_buffers(self, work: Collective, size: int) -> Iterator[tuple[Memory, int]]:
        whole = self.transfers[0].bytes_moved(size)
        needed = work.buffer_bytes(whole, len(self.transfers))
        for transfer, (sent, received) in zip(self.transfers, needed, strict=True):
            yield transfer.destination, received
            if sent:
                yield transfer.source, sent


class Benchmark(msgspec.Struct, frozen=True):
    """A matrix of cells. `parts` names a cell's transfers. If `sweep`, columns are settings. If
    `pairs`, cells may be pairs of devices, of which disjoint ones share a round if `in_rounds`.
    Cells with the same number in `rounds` are measured at the same time or not at all."""

    name: str
    title: str
    backend: str
    cells: tuple[Cell, ...] = ()
    unit: Unit = BANDWIDTH
    parts: tuple[str, ...] = ()
    sweep: bool = False
    pairs: bool = False
    rounds: tuple[int, ...] = ()
    in_rounds: bool = False
    sampled: SampledPairs | None = None
    size: int | None = None
    reason: str | None = None


# A random sample of the pairs of devices: what is asked for, and the result.

Seed = Annotated[int, Meta(ge=0, lt=1 << 32, description="0 to 4294967295")]


class PairSample(msgspec.Struct, frozen=True):
    """The request for a random sample of all pairs of devices.

    count: The number of pairs to draw; all pairs if there are fewer.
    seed: The seed of the random numbers, 0 to 4294967295."""

    count: int
    seed: Seed = 1


class SampledPairs(msgspec.Struct, frozen=True):
    """The result of drawing a random sample of pairs.

    pairs: The number of pairs that were sampled.
    all: The number of all pairs.
    seed: The seed of the random numbers."""

    pairs: int
    all: int
    seed: int

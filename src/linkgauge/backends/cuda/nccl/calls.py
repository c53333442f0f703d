"""Which library calls make up a collective. They are the same as in nccl-tests (src/*.cu)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from linkgauge.backends.cuda.device import CudaDevice
from linkgauge.backends.cuda.queue import address_of
from linkgauge.backends.operations.collectives import RankShare
from linkgauge.model.errors import Unsupported
from linkgauge.model.operations.collective import Collective, CollectiveName, Counts

from .library import Nccl

GROUP_START, GROUP_END = "ncclGroupStart", "ncclGroupEnd"


class LibraryCall(NamedTuple):
    name: str
    address: int
    words: tuple[int, ...]


class CollectivePart(NamedTuple):
    """A rank of a collective. `place` is the index of the rank's copy. `send` and `receive` are
    addresses, and are equal if the collective works in place."""

    place: int
    rank: int
    ranks: int
    device: CudaDevice
    communicator: Any
    send: int
    receive: int
    work: Collective
    size: int

    @property
    def share(self) -> RankShare:
        return RankShare(self.work, self.rank, self.ranks, self.size)

    @property
    def counts(self) -> Counts:
        return self.share.counts

    @property
    def sends_from(self) -> int:
        """The address of the data to send. In place, the data is in the receive buffer."""
        return self.send + self.share.sends_at

    @property
    def receives_at(self) -> int:
        return self.receive + self.share.receives_at


def driver_call(name: str, *words: int) -> LibraryCall:
    return LibraryCall(name, address_of(name), words)


def iteration(
    nccl: Nccl, parts: Sequence[CollectivePart], reductions: Sequence[int]
) -> list[LibraryCall]:
    """Returns the calls of an iteration. Calls that wait for each other form an NCCL group. Raises
    Unsupported if there is nothing to call, as for one rank in place."""
    by_part = [list(_steps(nccl, part, code)) for part, code in zip(parts, reductions, strict=True)]
    calls: list[LibraryCall] = []
    begin, end = _call(nccl, GROUP_START), _call(nccl, GROUP_END)
    # In one group, nccl-tests counts as many calls as one.
    times = parts[0].work.aggregated
    for step in zip(*by_part, strict=True):
        own = [call for of_part in step for call in of_part] * times
        calls += [begin, *own, end] if len(own) > 1 else own
    if not calls:
        raise Unsupported(f"{parts[0].work.collective} of one rank in place does nothing")
    return calls if len(by_part[0]) == 1 else calls * times


def _call(nccl: Nccl, name: str, *words: int) -> LibraryCall:
    return LibraryCall(name, nccl.address(name), words)


def _steps(nccl: Nccl, part: CollectivePart, reduction: int) -> Iterator[Sequence[LibraryCall]]:
    """Yields the calls of each step. A step begins when all ranks have ended the step before."""
    work, name = part.work, _FUNCTIONS.get(part.work.collective)
    if name is None or (name in _SINCE_2_28 and not nccl.has(name)):
        yield from _MOVES[work.collective](nccl, part)
        return
    words = [part.sends_from, part.receives_at, part.counts.count, work.number.code]
    words += [reduction] if work.reduces else []
    words += [work.root or 0] if work.has_root else []
    yield [_call(nccl, name, *words, int(part.communicator.ptr), _stream(part))]


def _stream(part: CollectivePart) -> int:
    return int(part.device.stream(0))


def _move(
    nccl: Nccl, part: CollectivePart, name: str, address: int, count: int, peer: int
) -> LibraryCall:
    way = int(part.communicator.ptr), _stream(part)
    return _call(nccl, name, address, count, part.work.number.code, peer, *way)


def _to_next(nccl: Nccl, part: CollectivePart) -> Iterator[Sequence[LibraryCall]]:
    rank, ranks, count = part.rank, part.ranks, part.counts.count
    yield [
        _move(nccl, part, "ncclSend", part.sends_from, count, (rank + 1) % ranks),
        _move(nccl, part, "ncclRecv", part.receives_at, count, (rank - 1) % ranks),
    ]


def _with_all(nccl: Nccl, part: CollectivePart, name: str) -> list[LibraryCall]:
    count, share = part.counts.count, part.counts.count * part.work.number.bytes
    first = part.sends_from if name == "ncclSend" else part.receives_at
    return [_move(nccl, part, name, first + p * share, count, p) for p in range(part.ranks)]


def _between_all(nccl: Nccl, part: CollectivePart) -> Iterator[Sequence[LibraryCall]]:
    yield _with_all(nccl, part, "ncclSend") + _with_all(nccl, part, "ncclRecv")


def _to_root(nccl: Nccl, part: CollectivePart) -> Iterator[Sequence[LibraryCall]]:
    root = part.work.root or 0
    own = _move(nccl, part, "ncclSend", part.sends_from, part.counts.count, root)
    yield [own, *(_with_all(nccl, part, "ncclRecv") if part.rank == root else ())]


def _from_root(nccl: Nccl, part: CollectivePart) -> Iterator[Sequence[LibraryCall]]:
    root = part.work.root or 0
    own = _move(nccl, part, "ncclRecv", part.receives_at, part.counts.count, root)
    yield [*(_with_all(nccl, part, "ncclSend") if part.rank == root else ()), own]


def _hypercube(nccl: Nccl, part: CollectivePart) -> Iterator[Sequence[LibraryCall]]:
    # In step i, ranks whose numbers differ in bit i exchange all shares that they hold.
    count, share = part.counts.count, part.counts.count * part.work.number.bytes
    own = part.receive + part.rank * share
    if part.sends_from == own or not share:
        yield []
    else:
        words = own, part.sends_from, share, _stream(part)
        yield [driver_call("cuMemcpyAsync", *words)]
    bit = 1
    while bit < part.ranks:
        mine = part.rank & ~(bit - 1)
        theirs, peer = mine ^ bit, part.rank ^ bit
        yield [
            _move(nccl, part, "ncclSend", part.receive + mine * share, count * bit, peer),
            _move(nccl, part, "ncclRecv", part.receive + theirs * share, count * bit, peer),
        ]
        bit *= 2


_FUNCTIONS: Mapping[CollectiveName, str] = {
    "all_reduce": "ncclAllReduce",
    "all_gather": "ncclAllGather",
    "reduce_scatter": "ncclReduceScatter",
    "broadcast": "ncclBroadcast",
    "reduce": "ncclReduce",
    "alltoall": "ncclAlltoAll",
    "gather": "ncclGather",
    "scatter": "ncclScatter",
}
_SINCE_2_28 = ("ncclAlltoAll", "ncclGather", "ncclScatter")
"""Functions that exist since NCCL 2.28. Earlier versions need sends and receives instead."""
_MOVES: Mapping[
    CollectiveName, Callable[[Nccl, CollectivePart], Iterator[Sequence[LibraryCall]]]
] = {
    "alltoall": _between_all,
    "gather": _to_root,
    "scatter": _from_root,
    "sendrecv": _to_next,
    "hypercube": _hypercube,
}

"""Which C functions of MPI one rank calls for a collective, with all arguments.

Out of place, a rank sends from one buffer and receives in another. In place (MPI_IN_PLACE,
MPI_Sendrecv_replace), the rank uses only the receive buffer. Sources: MPI 4.1, chapters 3 and 6;
nccl-tests for the hypercube (`src/hypercube.cu`)."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from linkgauge.backends.iterations import Call, address_of
from linkgauge.model.errors import Unsupported
from linkgauge.model.operations.collective import (
    Collective,
    CollectiveName,
    Counts,
    NumberName,
    Reduction,
    no_hypercube,
)

from .world import library

TYPES: Mapping[NumberName, str] = {
    "int8": "INT8_T",
    "uint8": "UINT8_T",
    "int32": "INT32_T",
    "uint32": "UINT32_T",
    "int64": "INT64_T",
    "uint64": "UINT64_T",
    "float": "FLOAT",
    "double": "DOUBLE",
}
OPERATIONS: Mapping[Reduction, str] = {"sum": "SUM", "prod": "PROD", "max": "MAX", "min": "MIN"}
FUNCTIONS: Mapping[CollectiveName, str] = {
    "all_reduce": "MPI_Allreduce",
    "all_gather": "MPI_Allgather",
    "reduce_scatter": "MPI_Reduce_scatter_block",
    "broadcast": "MPI_Bcast",
    "reduce": "MPI_Reduce",
    "alltoall": "MPI_Alltoall",
    "gather": "MPI_Gather",
    "scatter": "MPI_Scatter",
    "sendrecv": "MPI_Irecv and MPI_Send",
    "hypercube": "MPI_Irecv and MPI_Send",
}
MOST_ELEMENTS = (1 << 31) - 1
"""The largest number of elements in a message, because MPI counts them by an `int`. The large
counts of MPI 4 are not in Open MPI 4."""
_REQUEST, _STATUS = 8, 256
"""Bytes that are enough for a request and for a status of any MPI library."""
_TAG = 1


class NamedCall(NamedTuple):
    name: str
    call: Call


class GroupPlace(NamedTuple):
    """A rank in its group. `send` and `receive` are addresses; in place, only `receive` is used."""

    rank: int
    ranks: int
    send: int
    receive: int


def barrier(mpi: Any, comm: Any) -> NamedCall:
    name = "MPI_Barrier"
    return NamedCall(name, (address_of(library(mpi), name), (mpi._handleof(comm),)))  # noqa: SLF001


class Calls:
    def __init__(
        self, mpi: Any, comm: Any, work: Collective, counts: Counts, at: GroupPlace
    ) -> None:
        self._functions = library(mpi)
        handle = mpi._handleof  # noqa: SLF001  # mpi4py documents it
        self._comm, self._alone = handle(comm), handle(mpi.COMM_SELF)
        self._type = handle(getattr(mpi, TYPES[work.type]))
        self._operation = (
            handle(getattr(mpi, OPERATIONS[work.reduction])) if work.reduction is not None else 0
        )
        self._in_place = int(mpi.IN_PLACE) % (1 << 64)
        self._work, self._counts, self._at = work, counts, at
        self._root = work.root or 0
        self._held = ctypes.create_string_buffer(_REQUEST + _STATUS)

    def once(self) -> tuple[NamedCall, ...]:
        match self._work.collective:
            case "broadcast":
                return tuple(self._broadcast())
            case "sendrecv":
                return tuple(self._send_to_next())
            case "hypercube":
                return tuple(self._hypercube())
            case name:
                return (self._call(FUNCTIONS[name], *self._ends(name), self._comm),)

    @property
    def result(self) -> int:
        """The address of the received data."""
        # In place, only MPI_Reduce_scatter_block writes to the buffer's beginning.
        if not self._work.in_place or self._work.collective == "reduce_scatter":
            return self._at.receive
        return self._share(self._counts.receive_step)

    @property
    def given(self) -> int:
        return self._share(self._counts.send_step) if self._work.in_place else self._at.send

    def _share(self, step: int) -> int:
        return self._at.receive + self._at.rank * step * self._work.number.bytes

    def _call(self, name: str, *arguments: int) -> NamedCall:
        return NamedCall(name, (address_of(self._functions, name), arguments))

    def _ends(self, name: CollectiveName) -> tuple[int, ...]:
        count, one, root = self._counts.count, self._type, self._root
        send, receive = self.given, self._at.receive
        if self._work.in_place:
            send, receive = self._in_place_ends(name)
        match name:
            case "all_reduce" | "reduce_scatter":
                return send, receive, count, one, self._operation
            case "reduce":
                return send, receive, count, one, self._operation, root
            case "gather" | "scatter":
                return send, count, one, receive, count, one, root
            case _:  # all_gather, alltoall
                return send, count, one, receive, count, one

    def _in_place_ends(self, name: CollectiveName) -> tuple[int, int]:
        """Returns the send and receive addresses: MPI_IN_PLACE where required, 0 if unused."""
        receive, is_root = self._at.receive, self._at.rank == self._root
        if name == "scatter":
            return (receive, self._in_place) if is_root else (0, self.result)
        if name in ("reduce", "gather") and not is_root:
            return self.given, 0
        return self._in_place, receive

    def _broadcast(self) -> Iterator[NamedCall]:
        # MPI_Bcast has one buffer, so a root out of place first copies to its receive buffer.
        count, at = self._counts.count, self._at
        sends = at.rank == self._root and not self._work.in_place
        if sends:
            yield self._copy(self.given, count, at.receive)
        buffer = self.given if sends else at.receive
        yield self._call("MPI_Bcast", buffer, count, self._type, self._root, self._comm)

    def _send_to_next(self) -> Iterator[NamedCall]:
        at, count = self._at, self._counts.count
        following, before = (at.rank + 1) % at.ranks, (at.rank - 1) % at.ranks
        if not self._work.in_place:
            yield from self._exchange(at.send, count, following, at.receive, before)
            return
        ways = following, _TAG, before, _TAG
        status = ctypes.addressof(self._held) + _REQUEST
        replaced = at.receive, count, self._type, *ways, self._comm, status
        yield self._call("MPI_Sendrecv_replace", *replaced)

    def _hypercube(self) -> Iterator[NamedCall]:
        at, count = self._at, self._counts.count
        size = count * self._work.number.bytes
        if not self._work.in_place:
            yield self._copy(at.send, count, at.receive + at.rank * size)
        mask = 1
        while mask < at.ranks:
            mine = at.rank & ~(mask - 1)
            sent, received = (at.receive + share * size for share in (mine, mine ^ mask))
            other = at.rank ^ mask
            yield from self._exchange(sent, count * mask, other, received, other)
            mask <<= 1

    def _copy(self, source: int, count: int, destination: int) -> NamedCall:
        # MPI_Allgather of this rank alone is as fast as memmove.
        given = source, count, self._type, destination, count, self._type
        return self._call("MPI_Allgather", *given, self._alone)

    def _exchange(
        self, sent: int, count: int, to: int, received: int, source: int
    ) -> Iterator[NamedCall]:
        # MPI_Sendrecv has too many arguments for the native core.
        request = ctypes.addressof(self._held)
        begun = received, count, self._type, source, _TAG, self._comm, request
        yield self._call("MPI_Irecv", *begun)
        yield self._call("MPI_Send", sent, count, self._type, to, _TAG, self._comm)
        yield self._call("MPI_Wait", request, request + _REQUEST)


def check_work(work: Collective, size: int, ranks: int) -> None:
    """Raises Unsupported on all ranks if MPI cannot carry out the collective."""
    if work.type not in TYPES:
        raise Unsupported(f"MPI has no type {work.type}: give one of {', '.join(TYPES)}")
    if work.reduction is not None and work.reduction not in OPERATIONS:
        known = ", ".join(OPERATIONS)
        raise Unsupported(f"MPI has no operation {work.reduction}: give one of {known}")
    if work.graphed:
        raise Unsupported("MPI launches no graphs: the host makes its calls")
    if work.registered is not None:
        raise Unsupported("MPI registers no buffers for collectives")
    for group in work.groups(ranks):
        _check_group(work, size, len(group))


def _check_group(work: Collective, size: int, ranks: int) -> None:
    counts = work.counts(size, ranks)
    if max(counts.send, counts.receive) > MOST_ELEMENTS:
        raise Unsupported(f"MPI counts at most {MOST_ELEMENTS} elements")
    if work.root is not None and work.root >= ranks:
        raise Unsupported(f"no root {work.root} in a group of {ranks} ranks")
    if (why := no_hypercube(work.collective, ranks)) is not None:
        raise Unsupported(why)

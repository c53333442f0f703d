"""How one rank takes part in collectives by MPI. A native loop calls MPI's C functions. All ranks
start after MPI_Barrier, and each measures the time until its own calls have returned."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from linkgauge import _native
from linkgauge.backends import native
from linkgauge.backends.operations.collectives import CollectiveGroup, RankShare
from linkgauge.backends.protocol import Copy, Pattern, Timing, Wrong, seed_of
from linkgauge.model.errors import BackendError, Unsupported
from linkgauge.model.operations.collective import Collective, CollectiveName, colors_of

from .calls import FUNCTIONS, Calls, GroupPlace, NamedCall, barrier, check_work
from .group import address_in
from .world import mpi_errors

_POISON = (1 << 64) - 1
"""A word for receive buffers before a check. No rank sends it, except as unsigned 8-bit numbers."""
_MOST_LOOPS = 1 << 16
"""The largest number of loops. It is limited because the end of each loop is stored."""
_NANO = 1e-9
_BY_ROOT: tuple[CollectiveName, ...] = ("broadcast", "scatter")
"""The collectives in which only the root sends."""


class Communicators:
    """Creates MPI communicators, together with the other ranks, and keeps them until the end."""

    def __init__(self, mpi: Any) -> None:
        self.mpi, self.world = mpi, mpi.COMM_WORLD
        self._made: dict[object, Any] = {}

    def of_colors(self, colors: tuple[int, ...]) -> Any:
        """Returns a communicator of the ranks with this rank's color. All ranks must call this."""
        size, rank = self.world.size, self.world.rank
        if len(colors) != size:
            raise Unsupported(f"a collective needs all {size} ranks, not {len(colors)}")
        return self._once("MPI_Comm_split", colors, lambda: self.world.Split(colors[rank], rank))

    def of_root(self, root: int) -> Any:
        return self._once("MPI_Comm_dup", root, self.world.Dup)

    def of_some(self, ranks: tuple[int, ...]) -> Any:
        """Returns a communicator of `ranks`. All of these ranks, and no others, must call this."""
        if len(ranks) == self.world.size:
            return self.world
        return self._once(
            "MPI_Comm_create_group",
            (ranks,),
            lambda: self.world.Create_group(self.world.Get_group().Incl(ranks)),
        )

    def _once(self, call: str, key: object, make: Callable[[], Any]) -> Any:
        if key not in self._made:
            with mpi_errors(call):
                self._made[key] = make()
        return self._made[key]

    def close(self) -> None:
        for key in tuple(self._made):  # all ranks made them in this order
            with mpi_errors("MPI_Comm_free"):
                self._made.pop(key).Free()


class MpiCollective(CollectiveGroup):
    """One rank of a collective. Either all ranks raise Unsupported, or none does."""

    most_loops = _MOST_LOOPS

    def __init__(
        self,
        communicators: Communicators,
        work: Collective,
        copies: Sequence[Copy],
        cpus: Sequence[int],
    ) -> None:
        super().__init__(work)
        ranks, mpi = len(copies), communicators.mpi
        check_work(work, copies[0].size, ranks)
        comm = communicators.of_colors(colors_of(work.split, ranks))
        self._number, own = next(
            (number, copy)
            for number, copy in enumerate(copies)
            if copy.transfer.destination.rank == mpi.COMM_WORLD.rank
        )
        self._cpus = cpus
        self._share = RankShare(work, comm.rank, comm.size, own.size)
        self._counts = self._share.counts
        self._receive = address_in(own.destination)
        send = 0 if own.source is None else address_in(own.source)
        self._calls = Calls(
            mpi, comm, work, self._counts, GroupPlace(comm.rank, comm.size, send, self._receive)
        )
        # Of all ranks: groups that work at the same time have to start together.
        self._start, self._once = barrier(mpi, mpi.COMM_WORLD), self._calls.once()
        self._iteration = self._once * work.aggregated
        self._loop = (*self._iteration, barrier(mpi, comm)) if work.blocking else self._iteration

    @property
    def remarks(self) -> tuple[str, ...]:
        said = [f"between host memories, by {FUNCTIONS[self._work.collective]}"]
        if self._work.blocking:
            said.append("MPI_Barrier follows each iteration, and is part of its time")
        else:
            said.append("MPI has no streams: blocking calls follow each other without a barrier")
        if not self._counts.count:
            said.append("nothing moves: a rank's share is a whole number of 16 bytes")
        if self._work.collective == "broadcast" and not self._work.in_place:
            said.append("the root also copies to its receive buffer (MPI_Allgather of itself)")
        return tuple(said)

    def wait(self) -> Timing:
        loops = math.prod(self.pass_gate())
        self._make((self._start,))
        seconds = self._make(self._loop, loops)[-1] * _NANO
        return Timing((seconds,), seconds)

    def iterations(self, count: int) -> tuple[tuple[float, ...], ...]:
        """Returns this rank's seconds for each of `count` iterations. A barrier precedes each."""
        return (tuple(self._single() * _NANO for _ in range(count)),)

    def _single(self) -> int:
        _, after_barrier, end = self._make((self._start,), 1, self._iteration)
        return end - after_barrier

    def _make(
        self, calls: Sequence[NamedCall], count: int = 1, last: Sequence[NamedCall] = ()
    ) -> list[int]:
        ends, status, failed = _native.time_iterations(
            [one.call for one in calls], count, [one.call for one in last]
        )
        if status:
            raise BackendError((*calls, *last)[failed].name, f"returned {status}")
        return ends

    def carry_out(self, loops: int) -> None:
        self._make(self._once, loops)

    def found(self) -> Iterator[Wrong]:
        count, first = self._share.wrong(self._calls.result, self._seed, self._cpus)
        yield Wrong(count, self._number, first)

    def fill(self) -> None:
        counts, work = self._counts, self._work
        received = max(counts.send, counts.receive) if work.in_place else counts.receive
        size, poison = max(received * work.number.bytes, 1), seed_of(_POISON)
        native.fill(self._receive, size, Pattern.CONSTANT, poison, inverted=False, cpus=self._cpus)
        if work.collective not in _BY_ROOT or self._share.rank == work.root:
            self._share.fill(self._calls.given, self._seed, self._cpus)

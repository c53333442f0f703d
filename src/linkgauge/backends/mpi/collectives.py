"""Collectives between the memories of hosts, by MPI: the part of one rank.

The native loop calls MPI's C functions, with no Python between them. All ranks leave one barrier
(MPI_Barrier) before the clock starts, and each reads its own when its own calls have returned.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

from linkgauge import _native
from linkgauge.backends import native
from linkgauge.backends.protocol import Gated, Pace, Pattern, Timing, Wrong, seed_of
from linkgauge.model.collective import (
    Collective,
    CollectiveName,
    colors_of,
    content_fields,
    origin_of,
)
from linkgauge.model.errors import BackendError, Unsupported
from linkgauge.model.transfer import Transfer

from .calls import FUNCTIONS, Calls, NamedCall, Place, barrier, check_work
from .world import mpi_errors

_POISON = (1 << 64) - 1
"""All bits of it are 1, which is no number that is sent, but for an unsigned one of 8 bits."""
_MOST_LOOPS = 1 << 16
"""Each loop's end is kept, so their number is limited."""
_NANO = 1e-9
_BY_ROOT: tuple[CollectiveName, ...] = ("broadcast", "scatter")
"""Of which the root alone sends."""


class RankPart(NamedTuple):
    """A rank's part of a collective: the addresses of its buffers (0 of another rank's, and of a
    send buffer in place), the size of the whole, and the seed of its content."""

    rank: int
    send: int
    receive: int
    size: int
    seed: int


def part_refusal(transfer: Transfer) -> str | None:
    """Why a transfer is no rank's part of a collective by MPI, or None."""
    memory = transfer.source
    if transfer != Transfer(memory, memory, transfer.engine, transfer.scale):
        return f"{transfer}: a rank's part of a collective begins and ends in its own memory"
    if not memory.is_host or memory.kind or transfer.engine.owner != memory:
        return f"{transfer}: collectives by MPI are between pinned host memories"
    return None


class Communicators:
    """MPI's communicators of groups of all ranks: one for each way to divide these, kept until the
    end."""

    def __init__(self, mpi: Any) -> None:
        self.mpi = mpi
        self._made: dict[tuple[int, ...], Any] = {}

    def of(self, colors: tuple[int, ...]) -> Any:
        """Of this rank's group, given the color of each rank. All ranks have to call this."""
        if colors not in self._made:
            world = self.mpi.COMM_WORLD
            if len(colors) != world.size:
                raise Unsupported(f"a collective needs all {world.size} ranks, not {len(colors)}")
            with mpi_errors("MPI_Comm_split"):
                self._made[colors] = world.Split(colors[world.rank], world.rank)
        return self._made[colors]

    def close(self) -> None:
        for colors in tuple(self._made):  # all ranks made them in this order
            with mpi_errors("MPI_Comm_free"):
                self._made.pop(colors).Free()


class MpiCollective(Gated):
    """This rank's part of a collective of all ranks, whose `parts` are in their order. Raises
    Unsupported, in all ranks alike, for what MPI does not do."""

    most_loops = _MOST_LOOPS

    def __init__(
        self,
        communicators: Communicators,
        work: Collective,
        parts: Sequence[RankPart],
        cpus: Sequence[int],
    ) -> None:
        ranks, mpi = len(parts), communicators.mpi
        check_work(work, parts[0].size, ranks)
        comm = communicators.of(colors_of(work.split, ranks))
        self._own = next(part for part in parts if part.rank == mpi.COMM_WORLD.rank)
        self._number = parts.index(self._own)
        self._work, self._cpus = work, cpus
        self._rank, self._ranks = comm.rank, comm.size
        self._counts = work.counts(self._own.size, self._ranks)
        at = Place(self._rank, self._ranks, self._own.send, self._own.receive)
        self._calls = Calls(mpi, comm, work, self._counts, at)
        # Of all ranks: groups that work at the same time have to start together.
        self._start, self._once = barrier(mpi, mpi.COMM_WORLD), self._calls.once()
        self._iteration = self._once * work.aggregated
        self._loop = (*self._iteration, barrier(mpi, comm)) if work.blocking else self._iteration
        self.pace = Pace(seconds=0.02, loops=2, steps=work.aggregated, rehearsed=True)

    @property
    def remarks(self) -> tuple[str, ...]:
        """What a reader of the figure must know."""
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
        """All loops, after a barrier of all ranks."""
        loops = math.prod(self.pass_gate())
        self._make((self._start,))
        seconds = self._make(self._loop, loops)[-1] * _NANO
        return Timing((seconds,), seconds)

    def iterations(self, count: int) -> tuple[tuple[float, ...], ...]:
        """The seconds of single iterations, each after a barrier of all ranks. None follows: ranks
        would then all end with the last one."""
        return (tuple(self._single() * _NANO for _ in range(count)),)

    def _single(self) -> int:
        _, after_barrier, end = self._make((self._start,), 1, self._iteration)
        return end - after_barrier

    def _make(
        self, calls: Sequence[NamedCall], count: int = 1, last: Sequence[NamedCall] = ()
    ) -> list[int]:
        """Nanoseconds as time_iterations() has them; raises BackendError for a call that fails."""
        ends, status, failed = _native.time_iterations(
            [one.call for one in calls], count, [one.call for one in last]
        )
        if status:
            raise BackendError((*calls, *last)[failed].name, f"returned {status}")
        return ends

    def check(self) -> Wrong:
        """Fills this rank's buffers, carries the collective out once, and counts what is wrong."""
        self._fill()
        self._make(self._once)
        origin = origin_of(self._work, self._counts, self._rank, self._ranks)
        if origin is None:
            return Wrong()
        count, first = _native.count_wrong(
            self._calls.result,
            self._counts.receive,
            self._work.number.code,
            self._content(),
            (origin.first, origin.chunk, origin.base),
            self._cpus,
        )
        return Wrong(count, self._number, first)

    def _fill(self) -> None:
        """Poison in all that is received, then what this rank sends."""
        counts, number = self._counts, self._work.number
        received = max(counts.send, counts.receive) if self._work.in_place else counts.receive
        size, poison = max(received * number.bytes, 1), seed_of(_POISON)
        native.fill(
            self._own.receive, size, Pattern.CONSTANT, poison, inverted=False, cpus=self._cpus
        )
        if self._work.collective in _BY_ROOT and self._rank != self._work.root:
            return
        _native.fill_content(
            self._calls.given, counts.send, number.code, self._content(), self._rank, self._cpus
        )

    def _content(self) -> tuple[int, int, int, int, int, float]:
        return content_fields(self._work, self._ranks, self._own.seed)

"""How one rank takes part in copies and broadcasts by MPI."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, cast

from linkgauge.backends.protocol import Addressed, Buffer, Copy, Gated, SamplingPolicy, Timing
from linkgauge.backends.rank import held
from linkgauge.model.errors import Unsupported

from .streams import StreamPart, broadcast_streams, message_stream, run
from .window import WindowPart
from .world import mpi_errors

POLICY = SamplingPolicy(seconds=0.02, loops=2)


class MpiGroup(Gated):
    """One rank's part of copies, which are broadcasts if `comms` has communicators (by root)."""

    policy = POLICY

    def __init__(
        self, mpi: Any, rank: int, copies: Sequence[Copy], comms: Mapping[int, Any]
    ) -> None:
        self._mpi, self._rank, self._copies, self._comms = mpi, rank, copies, comms
        self.from_one = bool(comms)
        self.shortest: float | None = None
        """Seconds of a loop of the shortest copy."""
        self._began = 0.0

    def arm(self, loops: int, batches: int = 1) -> None:
        """Prepares the messages. A one-sided copy only has a message that reports its end."""
        super().arm(loops, batches)
        part = StreamPart(self._mpi.COMM_WORLD, self._rank, loops * batches, self._memory)
        if self.from_one:
            self._ready = broadcast_streams(part, self._comms, self._copies)
        else:
            made = (message_stream(part, place, copy) for place, copy in enumerate(self._copies))
            self._ready = [stream for stream in made if stream is not None]

    def open(self) -> None:
        super().open()
        self._began = time.monotonic()

    def wait(self) -> Timing:
        loops = math.prod(self.pass_gate())
        with mpi_errors("move bytes by MPI"):
            ends = {} if self.from_one else self._one_sided(loops)
            ends |= run(self._mpi, self._ready)
        seconds = tuple(ends[place] - self._began for place in sorted(ends))
        if seconds:
            self.shortest = min(seconds) / loops
        return Timing(seconds, max(seconds, default=0.0))

    def _one_sided(self, loops: int) -> dict[int, float]:
        ends: dict[int, float] = {}
        for place, copy in enumerate(self._copies):
            transfer = copy.transfer
            if transfer.engine.kind != "rma" or transfer.engine.owner.rank != self._rank:
                continue
            source, destination = copy.source, copy.destination
            if source is None or destination is None:
                raise Unsupported(f"{transfer}: moves nothing between ranks")
            puts = transfer.source.rank == self._rank
            near, far = (source, destination) if puts else (destination, source)
            there = cast("WindowPart", held(far))
            move = there.window.Put if puts else there.window.Get
            call = partial(move, self._memory(near, copy.size), there.target, there.offset)
            for _ in range(loops):
                call()
            there.window.Flush(there.target)
            ends[place] = time.monotonic()
        return ends

    def _memory(self, buffer: Buffer | None, size: int) -> list[Any]:
        return [self._mpi.memory.fromaddress(address_in(buffer), size), self._mpi.BYTE]


def address_in(buffer: Buffer | None) -> int:
    return cast("Addressed", held(buffer)).address

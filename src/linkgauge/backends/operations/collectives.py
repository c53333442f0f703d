"""How each rank's data for a collective is made, and how the data that it receives is checked."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from linkgauge import _native
from linkgauge.backends.protocol import Gated, SamplingPolicy, Wrong
from linkgauge.model.operations.collective import Collective, Counts
from linkgauge.model.operations.contents import ElementOrigin, content_fields, origin_of

POISON = 0xA5
"""The value of every byte in a receive buffer before a check."""


class RankShare(NamedTuple):
    work: Collective
    rank: int
    ranks: int
    size: int

    @property
    def counts(self) -> Counts:
        return self.work.counts(self.size, self.ranks)

    @property
    def sends_at(self) -> int:
        """Where the data to send begins in the buffer, in bytes; 0 unless in place."""
        return self._after(self.counts.send_step)

    @property
    def receives_at(self) -> int:
        return self._after(self.counts.receive_step)

    def _after(self, step: int) -> int:
        return step * self.rank * self.work.number.bytes if self.work.in_place else 0

    @property
    def origin(self) -> ElementOrigin | None:
        """Where the received elements come from; None if nothing is received."""
        counts = self.counts
        return origin_of(self.work, counts, self.rank, self.ranks) if counts.receive else None

    def fill(self, address: int, seed: int, cpus: Sequence[int]) -> None:
        if self.counts.send:
            content = content_fields(self.work, self.ranks, seed)
            where = address, self.counts.send, self.work.number.code
            _native.fill_content(*where, content, self.rank, cpus)

    def wrong(self, address: int, seed: int, cpus: Sequence[int]) -> tuple[int, int]:
        origin = self.origin
        if origin is None:
            return 0, 0
        content = content_fields(self.work, self.ranks, seed)
        where = address, self.counts.receive, self.work.number.code
        origins = origin.first, origin.chunk, origin.base
        return _native.count_wrong(*where, content, origins, cpus)


class CollectiveGroup(Gated):
    def __init__(self, work: Collective) -> None:
        self._work = work
        self._seed = 0
        self.policy = SamplingPolicy(seconds=0.02, loops=2, steps=work.aggregated, rehearsed=True)

    def fill(self) -> None:
        """Fills the send buffers of this process's ranks, and overwrites their receive buffers."""
        raise NotImplementedError

    def carry_out(self, loops: int) -> None:
        raise NotImplementedError

    def found(self) -> Iterable[Wrong]:
        raise NotImplementedError

    def check(self) -> Wrong:
        self._seed += 1
        self.fill()
        self.carry_out(1)
        found = sorted((one for one in self.found() if one.count), key=lambda one: one.rank)
        first = found[0] if found else Wrong()
        return Wrong(sum(one.count for one in found), first.rank, first.first)

"""The backend with which a rank carries out its part of cells that span several ranks.

Each rank makes the same calls for all transfers of a cell. Memories and engines of other ranks are
only names. Ranks meet to open each other's memory, to start together, and to exchange timings. All
ranks therefore have the same data and choose the same numbers of loops and samples. No process
sends a message while a clock runs. The rank whose engine carries out a transfer also times it."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence

from linkgauge.backends.protocol import Buffer, Copy, Pattern, SimulatedClock
from linkgauge.backends.rank import RankBackend, SpannedBuffer, held
from linkgauge.model.errors import Phase, Unsupported
from linkgauge.model.hardware.machine import Device
from linkgauge.model.memory import Memory
from linkgauge.model.operations.collective import Collective
from linkgauge.model.operations.operation import OperationName
from linkgauge.model.transfer import Engine, Transfer

from .meeting_rank import MeetingRank
from .spanning_group import SpanningCollective, SpanningGroup


class SpanningBackend(MeetingRank):
    """One rank's backend for cells that span several ranks."""

    def __init__(self, name: str, own: RankBackend, rank: int, hosts: Sequence[str]) -> None:
        super().__init__(name, own, rank, hosts)
        self._group: SpanningGroup | None = None

    def devices(self) -> tuple[Device, ...]:
        return self.own.devices()

    def refusal(self, transfer: Transfer) -> str | Unsupported | None:
        """Returns why an engine of this rank cannot carry out the transfer; None in other cases."""
        mine = (transfer.engine.owner.rank or 0) == self.rank
        return self.own.refusal(transfer) if mine else None

    def remarks(self, transfer: Transfer) -> tuple[str, ...]:
        owner = transfer.engine.owner.rank or 0
        said = self.of_one(owner, lambda: self.own.remarks(transfer), tuple[str, ...])
        if any(str(memory) in self.shared for memory in transfer.memories):
            said = (*said, "more ranks than devices: ranks share a device and take turns")
        return said if self._group is None else (*said, *self._group.starts.remarks())

    def reach(self, memory: Memory, engine: Engine) -> object:
        return self.own.reach(memory, engine)

    def allocate(self, memory: Memory, size: int, engine: Engine) -> SpannedBuffer:
        buffer = SpannedBuffer(memory, size, engine)
        if self.is_mine(memory) and not self.own.is_window(engine):
            with self.named():
                self._have(buffer, self.own.allocate(memory, size, engine))
        return buffer

    def fill(self, buffer: Buffer, size: int, pattern: Pattern, seed: int, inverted: bool) -> None:
        self._now = None
        if self.is_mine(buffer.memory):
            self.attempt(lambda: self.own.fill(held(buffer), size, pattern, seed, inverted))

    def first_mismatch(self, buffer: Buffer, size: int, pattern: Pattern, seed: int) -> int | None:
        def compare() -> int | None:
            return self.own.first_mismatch(held(buffer), size, pattern, seed)

        kind: type[int | None] = int | None  # type: ignore[assignment]  # a form of types
        return self.of_one(buffer.memory.rank or 0, compare, kind, size)

    def checksum(self, buffer: Buffer, size: int) -> int:
        def summed() -> int:
            return self.own.checksum(held(buffer), size)

        return self.of_one(buffer.memory.rank or 0, summed, int, size)

    def clock(self) -> float:
        """Returns the time by the clock of the cell's first rank, the same in all ranks."""
        now, self._now = self._now, None
        if now is None:
            first = self.meeting.parties[0]
            now = self.of_one(first, time.monotonic, float)
        return now

    def prepare(self, copies: Sequence[Copy], operation: OperationName = "copy") -> SpanningGroup:
        kind = SpanningCollective if isinstance(operation, Collective) else SpanningGroup
        self._group = kind(self, copies, operation)
        return self._group

    def close(self) -> None:
        """Does nothing, because `own` is closed when the run is over."""


class SimSpanningBackend(SpanningBackend):
    def _virtual(self) -> SimulatedClock:
        assert isinstance(self.own, SimulatedClock)  # noqa: S101
        return self.own

    def clock(self) -> float:
        return self._virtual().clock()

    def enter(
        self,
        cells: Mapping[int, Sequence[Transfer]],
        phase: Phase,
        repetition: int = 0,
        taken: int = 0,
    ) -> None:
        self._virtual().enter(cells, phase, repetition, taken)

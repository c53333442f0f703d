"""The backend with which a rank carries out its part of cells that span several ranks.

Each rank makes the same calls for all transfers of a cell. Memories and engines of other ranks are
only names. Ranks meet to open each other's memory, to start together, and to exchange timings. So
all ranks know the same and choose the same numbers of loops and samples. No message is sent between
processes while a clock runs. The rank whose engine carries out a transfer also times it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

from msgspec.structs import replace

from linkgauge.backends import SIMULATED
from linkgauge.backends.protocol import Buffer, Copy, Pattern, SimulatedClock
from linkgauge.backends.rank import RankBackend, SpannedBuffer, held
from linkgauge.machine.processes.channel import error_of, reason_of
from linkgauge.model.errors import LinkgaugeError, Phase, Unsupported
from linkgauge.model.hardware.machine import Device
from linkgauge.model.memory import Memory
from linkgauge.model.operations.collective import Collective
from linkgauge.model.operations.operation import OperationName
from linkgauge.model.transfer import Engine, Transfer

from .meeting import Meeting
from .passages import Tokens
from .spanning_group import SpanningCollective, SpanningGroup

_T = TypeVar("_T")


class SpanningBackend:
    """A backend over several ranks; `own` is this rank's backend. `hosts` has the machine of each
    rank. Each repetition has a new `meeting`, and `repetition` is its number. `shared` names
    memories of devices that several ranks use."""

    def __init__(self, name: str, own: RankBackend, rank: int, hosts: Sequence[str]) -> None:
        self.name, self.own, self.rank, self.hosts = name, own, rank, hosts
        self.meeting = Meeting(rank, (rank,))
        self.repetition = 0
        self.shared: frozenset[str] = frozenset()
        self.tokens = Tokens(own)
        self._group: SpanningGroup | None = None
        self._now: float | None = None
        self.failed: LinkgaugeError | None = None
        """The error since the ranks last met."""

    @property
    def simulates(self) -> bool:
        """Whether the machine is simulated. Each rank then has all memories in its process."""
        return self.name == SIMULATED

    def is_mine(self, memory: Memory) -> bool:
        return self.simulates or (memory.rank or 0) == self.rank

    def devices(self) -> tuple[Device, ...]:
        return self.own.devices()

    def refusal(self, transfer: Transfer) -> str | Unsupported | None:
        """Returns why this rank cannot carry out the transfer; None if it can or need not."""
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

    def allocate_windows(self, buffers: Sequence[SpannedBuffer]) -> None:
        """Allocates MPI windows. All ranks of a cell do so together, in the same order."""
        for buffer, here in zip(
            buffers,
            self.own.windows(buffers, self.meeting.parties, self.repetition),
            strict=True,
        ):
            self._have(buffer, here)

    def _have(self, buffer: SpannedBuffer, here: Buffer) -> None:
        buffer.here, buffer.warnings = here, here.warnings
        buffer.placed = replace(here.placement(), memory=str(buffer.memory))
        try:
            buffer.handle = self.own.handle(here)
        except LinkgaugeError:
            buffer.free()
            raise

    def fill(self, buffer: Buffer, size: int, pattern: Pattern, seed: int, inverted: bool) -> None:
        self._now = None
        if self.is_mine(buffer.memory):
            self.attempt(lambda: self.own.fill(held(buffer), size, pattern, seed, inverted))

    def attempt(self, action: Callable[[], object]) -> None:
        """Runs an action unless one failed before. Keeps its error for the next meeting."""
        if self.failed is None:
            try:
                action()
            except LinkgaugeError as error:
                self.failed = error

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
        """Returns the time by the clock of the cell's first rank. All ranks get the same value."""
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

    @contextmanager
    def named(self) -> Iterator[None]:
        """Adds the name of this rank to errors raised in this block."""
        try:
            yield
        except LinkgaugeError as error:
            raise error_of(reason_of(error), f"rank {self.rank}") from error

    def together(
        self, action: Callable[[], _T], kind: type[_T], moved: int = 0, late: bool | None = None
    ) -> Mapping[int, _T]:
        """Runs an action in each rank of the cell, and returns the results by rank. If any rank has
        an error, all raise the first one. `moved` is the most bytes moved before the next meeting.
        With `late` (whether the last start was late), ranks agree on the next start."""
        failed, self.failed = self.failed, None
        if len(self.meeting.parties) == 1:
            with self.named():
                if failed is not None:
                    raise failed
                return {self.rank: action()}
        found: _T | None = None
        if failed is None:
            try:
                found = action()
            except LinkgaugeError as error:
                failed = error
        reason = None if failed is None else reason_of(failed)
        starts = late is not None
        return self.meeting.share(found, reason, kind, moved, start=starts, late=bool(late))

    def of_one(self, rank: int, action: Callable[[], _T], kind: type[_T], moved: int = 0) -> _T:
        """Runs an action in one rank, and returns its value in all ranks."""
        if self.simulates:
            return action()
        optional: Any = kind | None
        found: Mapping[int, Any] = self.together(
            lambda: action() if rank == self.rank else None, optional, moved
        )
        of_rank: _T = found[rank]
        return of_rank

    def has_time(self, now: float) -> None:
        """Sets the time that `clock` returns next."""
        self._now = now


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

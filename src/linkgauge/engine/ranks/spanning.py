"""The backend with which a rank carries out cells that span several ranks, as the others of the
cell do at the same time.

Each rank has the engine's own worker, and goes through the same calls for all of a cell's
transfers; what is not its own memory or engine is a name to it. Where the ranks depend on each
other, they meet: to open each other's memory, to start together, to have all timings. So all of
them know the same, and decide alike how many loops and samples to take. Nothing crosses between
processes while a clock runs: each transfer is timed by the rank whose engine carries it out.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

from linkgauge.backends import SIMULATED
from linkgauge.backends.member import Allocate, Member
from linkgauge.backends.protocol import Buffer, Copy, Pattern, Virtual
from linkgauge.machine.channel import error_of, reason_of
from linkgauge.model.collective import Collective
from linkgauge.model.errors import LinkgaugeError, Phase, Unsupported
from linkgauge.model.machine import Device
from linkgauge.model.memory import Memory
from linkgauge.model.operation import OperationName
from linkgauge.model.transfer import Engine, Transfer

from .meeting import Meeting
from .passages import PASSING, Tokens, crosses
from .spanning_group import SpannedBuffer, SpanningCollective, SpanningGroup, spanned

_T = TypeVar("_T")


class SpanningBackend:
    """`member` is what this rank measures with, `hosts` are the machines of all ranks, by number.
    Each cell has a `meeting` of its own; devices of memories in `shared` are several ranks'."""

    def __init__(self, name: str, member: Member, rank: int, hosts: Sequence[str]) -> None:
        self.name, self.member, self.rank, self.hosts = name, member, rank, hosts
        self.meeting = Meeting(rank, (rank,))
        self.shared: frozenset[str] = frozenset()
        self.tokens = Tokens(member)
        self._made = 0
        self._group: SpanningGroup | None = None
        self._now: float | None = None
        self.failed: LinkgaugeError | None = None
        """What failed since the ranks last met."""

    @property
    def simulates(self) -> bool:
        """Whether each rank simulates all of the machine: every memory is here."""
        return self.name == SIMULATED

    def is_mine(self, memory: Memory) -> bool:
        return self.simulates or (memory.rank or 0) == self.rank

    def devices(self) -> tuple[Device, ...]:
        return (self.member.device(),)

    def refusal(self, transfer: Transfer) -> str | Unsupported | None:
        """Of another rank's transfer it is that one's to say."""
        mine = (transfer.engine.owner.rank or 0) == self.rank
        return self.member.refusal(transfer) if mine else None

    def remarks(self, transfer: Transfer) -> tuple[str, ...]:
        owner = transfer.engine.owner.rank or 0
        said = self.of_one(owner, lambda: self.member.remarks(transfer), tuple[str, ...])
        if any(str(memory) in self.shared for memory in transfer.memories):
            said = (*said, "more ranks than devices: ranks share a device and take turns")
        return said if self._group is None else (*said, *self._group.starts.remarks())

    def reach(self, memory: Memory, engine: Engine) -> object:
        """One-sided accesses need memory that MPI knows, engines of other machines such as the
        fabric has, UCX such as it has mapped for the same interfaces."""
        mapped = str(engine) if engine.kind in ("ucx", "rdma") else None
        return memory, engine.kind == "rma", crosses(self.hosts, memory, engine), mapped

    def allocate(self, memory: Memory, size: int, engine: Engine) -> SpannedBuffer:
        buffer = SpannedBuffer(memory, size, engine)
        if self.is_mine(memory) and engine.kind != "rma":
            with self.named():
                self.have(buffer, self.next_number())
        return buffer

    def next_number(self) -> int:
        """One that no other rank gives."""
        self._made += 1
        return self._made * len(self.hosts) + self.rank

    def have(self, buffer: SpannedBuffer, number: int) -> None:
        """Allocates it here: with all ranks of the cell at the same time if it is for MPI's
        one-sided accesses."""
        memory, engine = buffer.memory, buffer.engine
        abroad = self.name in PASSING and crosses(self.hosts, memory, engine)
        parties = self.meeting.parties
        asked = Allocate(number, memory, buffer.size, engine, abroad, parties)
        buffer.number, buffer.allocated = number, self.member.allocate(asked)
        buffer.handle = buffer.allocated.handle
        buffer.release = lambda: self.member.free(number)

    def fill(self, buffer: Buffer, size: int, pattern: Pattern, seed: int, inverted: bool) -> None:
        own = spanned(buffer)
        self._now = None
        if self.is_mine(own.memory) and own.number is not None and self.failed is None:
            try:
                self.member.fill(own.number, size, pattern, seed, inverted)
            except LinkgaugeError as error:
                self.failed = error

    def first_mismatch(self, buffer: Buffer, size: int, pattern: Pattern, seed: int) -> int | None:
        own = spanned(buffer)
        compare = self.member.first_mismatch
        kind: type[int | None] = int | None  # type: ignore[assignment]  # a form of types
        return self.of_one(
            own.memory.rank or 0, lambda: compare(own.number or 0, size, pattern, seed), kind, size
        )

    def checksum(self, buffer: Buffer, size: int) -> int:
        own = spanned(buffer)
        summed = self.member.checksum
        return self.of_one(own.memory.rank or 0, lambda: summed(own.number or 0, size), int, size)

    def clock(self) -> float:
        """The same for all ranks of the cell: by the clock of the first of them."""
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
        """Does nothing: the member closes what it has when the run is over."""

    @contextmanager
    def named(self) -> Iterator[None]:
        """Errors say whose they are."""
        try:
            yield
        except LinkgaugeError as error:
            raise error_of(reason_of(error), f"rank {self.rank}") from error

    def together(
        self, action: Callable[[], _T], kind: type[_T], moved: int = 0, late: bool | None = None
    ) -> Mapping[int, _T]:
        """What the action gives in each rank of the cell. Raises, in all of them, the first error
        of any; `moved` bytes are moved before they meet again. They agree when to start unless
        `late`, whether the last start was, is null."""
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
        """What the action gives in this rank, in all of them."""
        if self.simulates:
            return action()
        optional: Any = kind | None
        found: Mapping[int, Any] = self.together(
            lambda: action() if rank == self.rank else None, optional, moved
        )
        of_rank: _T = found[rank]
        return of_rank

    def has_time(self, now: float) -> None:
        """What all clocks of the cell are said to read until something else happens."""
        self._now = now


class SimSpanningBackend(SpanningBackend):
    """The same of a simulated machine, which has a clock of its own."""

    def _virtual(self) -> Virtual:
        assert isinstance(self.member, Virtual)  # noqa: S101
        return self.member

    def clock(self) -> float:
        return self._virtual().clock()

    def enter(
        self, cells: Mapping[int, Sequence[Transfer]], phase: Phase, visit: int = 0, taken: int = 0
    ) -> None:
        self._virtual().enter(cells, phase, visit, taken)

"""One rank's part in cells that several ranks carry out together. The ranks exchange values where
they depend on each other. If one rank has an error, it is raised in all."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

from msgspec.structs import replace

from linkgauge.backends import SIMULATED
from linkgauge.backends.protocol import Buffer
from linkgauge.backends.rank import RankBackend, SpannedBuffer
from linkgauge.machine.processes.channel import error_of, reason_of
from linkgauge.model.errors import LinkgaugeError
from linkgauge.model.memory import Memory

from .meeting import Meeting
from .passages import Tokens

_T = TypeVar("_T")


class MeetingRank:
    """One rank of a run. `own` is the rank's backend. `hosts` names the machine of each rank. Each
    repetition sets `meeting` and `repetition`. `shared` names devices that several ranks use."""

    def __init__(self, name: str, own: RankBackend, rank: int, hosts: Sequence[str]) -> None:
        self.name, self.own, self.rank, self.hosts = name, own, rank, hosts
        self.meeting = Meeting(rank, (rank,))
        self.repetition = 0
        self.shared: frozenset[str] = frozenset()
        self.tokens = Tokens(own)
        self._now: float | None = None
        self.failed: LinkgaugeError | None = None
        """The error since the ranks last met."""

    @property
    def simulates(self) -> bool:
        """Whether the machine is simulated: each rank then has all memories in its own process."""
        return self.name == SIMULATED

    def is_mine(self, memory: Memory) -> bool:
        return self.simulates or (memory.rank or 0) == self.rank

    def allocate_windows(self, buffers: Sequence[SpannedBuffer]) -> None:
        """Allocates MPI windows for buffers. A cell's ranks must do this together, in one order."""
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

    def attempt(self, action: Callable[[], object]) -> None:
        """Runs an action, and keeps its error for the next meeting. Does nothing after an error."""
        if self.failed is None:
            try:
                action()
            except LinkgaugeError as error:
                self.failed = error

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
        """Runs an action in each rank of the cell, and returns the results by rank. The first error
        of any rank is raised in all ranks. `moved` is the most bytes moved before the ranks meet
        again. `late` says if the last start was late; None if they need no common next start."""
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

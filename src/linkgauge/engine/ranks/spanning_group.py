"""Groups of copies that span several ranks, as each of these carries them out."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

import msgspec

from linkgauge.backends import ACROSS_RANKS
from linkgauge.backends.member import (
    Allocated,
    Begin,
    Ended,
    Lent,
    Prepared,
    SharedCopy,
)
from linkgauge.backends.protocol import Buffer, Copy, Gated, Timing, Wrong
from linkgauge.model.collective import Collective
from linkgauge.model.errors import LinkgaugeError, Unsupported
from linkgauge.model.memory import Memory
from linkgauge.model.operation import OperationName, named
from linkgauge.model.result import Placement
from linkgauge.model.transfer import NIC_ENGINES, Engine, EngineKind

from .passages import FOUNDED, PASSING, Group, Reached, crosses, passed, reached
from .starts import Starts, common_pace

_BY_BOTH: tuple[EngineKind, ...] = ("msg", *NIC_ENGINES)
"""Engines whose work takes both ranks."""
_NOWHERE = Allocated(Placement("", 0), (), b"")

if TYPE_CHECKING:
    from .spanning import SpanningBackend


class SpannedBuffer:
    """A buffer of this rank, or of another one: then it is a name, until the ranks meet. What all
    ranks of the cell have to allocate at the same time is there only while they are prepared."""

    def __init__(self, memory: Memory, size: int, engine: Engine) -> None:
        self.memory, self.size, self.engine = memory, size, engine
        self.number: int | None = None
        self.handle = b""
        self.allocated = _NOWHERE
        self.release: Callable[[], None] | None = None

    @property
    def warnings(self) -> tuple[str, ...]:
        return self.allocated.warnings

    @property
    def lent(self) -> Lent:
        return Lent(self.number or 0, self.memory, self.size, self.handle)

    def placement(self) -> Placement:
        return self.allocated.placement

    def free(self) -> None:
        release, self.release = self.release, None
        if release is not None:
            release()


class SpanningGroup(Gated):
    """Copies of several ranks. If several have work to do, they start together, by clocks that were
    compared, if any; one alone starts at once. What two ranks pass on is work of both."""

    def __init__(
        self, backend: SpanningBackend, copies: Sequence[Copy], operation: OperationName
    ) -> None:
        self._backend, self._member = backend, backend.member
        self._moved = sum(copy.size for copy in copies)
        self._places = [copy.transfer.engine.owner.rank or 0 for copy in copies]
        self._buffers = [spanned(one) for c in copies for one in (c.source, c.destination) if one]
        by_both = any(copy.transfer.engine.kind in _BY_BOTH for copy in copies)
        does = named(operation)
        awaits_all = does.from_one or (by_both and does.is_copy)
        self.starts = Starts(self._places, awaits_all=awaits_all)
        try:
            self._lend()
            shared = tuple(map(_shared, copies))
            groups = self._founding(shared, operation)
            by_several = awaits_all or bool(groups) or len(set(self._places)) > 1
            # On a simulated machine all start together anyhow; MPI's collectives by its barrier.
            own = backend.simulates or (
                isinstance(operation, Collective) and backend.name == ACROSS_RANKS
            )
            self._is_timed = by_several and not own
            prepared = self._prepare(shared, operation, groups)
        except BaseException:
            self.close()
            raise
        self.most_loops = min(one.most_loops for one in prepared.values())
        self.pace = common_pace([one.pace for one in prepared.values() if one.pace is not None])

    def _lend(self) -> None:
        """All ranks have the numbers and the handles of all buffers."""
        backend = self._backend
        if backend.simulates:
            return
        own: dict[int, tuple[int, bytes]] = {}
        for at, buffer in enumerate(self._buffers):
            if backend.is_mine(buffer.memory):
                buffer.number = buffer.number or backend.next_number()
                own[at] = buffer.number, buffer.handle
        found = backend.together(lambda: own, dict[int, tuple[int, bytes]], self._moved)
        numbers = {at: given for of in found.values() for at, given in of.items()}
        together = []
        for at, buffer in enumerate(self._buffers):
            number, handle = numbers[at]
            if buffer.engine.kind == "rma":
                if buffer not in together:
                    together.append(buffer)
                    buffer.number = number
            elif not backend.is_mine(buffer.memory):
                buffer.number, buffer.handle = number, handle
        if together:  # in the same order in all ranks
            backend.together(partial(self._have, together), type(None), self._moved)

    def _have(self, buffers: Sequence[SpannedBuffer]) -> None:
        for buffer in buffers:
            self._backend.have(buffer, buffer.number or 0)

    def _founding(
        self, copies: tuple[SharedCopy, ...], operation: OperationName
    ) -> Mapping[int, Group]:
        """The ranks that found a communicator, by the place of their copy, or of their group in a
        collective."""
        backend = self._backend
        if isinstance(operation, Collective):
            if backend.name not in FOUNDED:
                return {}
            groups = operation.groups(len(copies))
            return {n: tuple(self._places[at] for at in of) for n, of in enumerate(groups)}
        if backend.name not in PASSING or not any(
            crosses(backend.hosts, memory, copy.transfer.engine)
            for copy in copies
            for memory in copy.transfer.memories
        ):
            return {}
        look = partial(reached, self._member, copies, backend.rank, backend.hosts, backend.shared)
        found = backend.together(look, Reached, self._moved)
        return passed(copies, operation, found.values())

    def _prepare(
        self, copies: tuple[SharedCopy, ...], operation: OperationName, groups: Mapping[int, Group]
    ) -> Mapping[int, Prepared]:
        backend = self._backend
        tokens: tuple[bytes, ...] = ()
        if groups:
            made = backend.together(
                lambda: backend.tokens.of(groups.values(), backend.rank), dict[str, bytes]
            )
            known = {key: token for of in made.values() for key, token in of.items()}
            count = len(groups) if isinstance(operation, Collective) else len(copies)
            tokens = tuple(known[str(groups[n])] if n in groups else b"" for n in range(count))
        try:
            return backend.together(
                lambda: self._member.prepare(copies, operation, tokens), Prepared, self._moved
            )
        except Unsupported:
            raise
        except LinkgaugeError:
            backend.tokens.forget(groups.values())  # what they founded may be broken
            raise

    def arm(self, loops: int, laps: int = 1) -> None:
        super().arm(loops, laps)
        if self._backend.failed is None:
            try:
                self._member.arm(loops, laps)
            except LinkgaugeError as error:
                self._backend.failed = error

    def wait(self) -> Timing:
        backend, starts = self._backend, self.starts
        loops = math.prod(self.pass_gate())
        late = starts.was_late if self._is_timed else None
        backend.together(lambda: None, type(None), self._moved * loops, late=late)
        at, ahead = backend.meeting.at, backend.meeting.ahead

        def run() -> tuple[Ended, float]:
            ended = self._member.begin(Begin(None if at is None else at + ahead))
            return msgspec.structs.replace(ended, opened=ended.opened - ahead), time.monotonic()

        found = backend.together(run, tuple[Ended, float], 2 * self._moved)
        backend.has_time(found[min(found)][1])
        return starts.timing({rank: ended for rank, (ended, _) in found.items()}, at, loops)

    def close(self) -> None:
        """Lets go of other ranks' memory, which their owners may free from then on."""
        super().close()
        self._member.close_group()
        for buffer in dict.fromkeys(self._buffers):
            if buffer.engine.kind == "rma" and not self._backend.simulates:
                buffer.free()
            elif buffer.number is not None and not self._backend.is_mine(buffer.memory):
                self._member.free(buffer.number)
                buffer.number = None


class SpanningCollective(SpanningGroup):
    """A collective, of which each copy is the part of a rank."""

    def iterations(self, count: int) -> tuple[tuple[float, ...], ...]:
        found = self._backend.together(
            lambda: self._member.iterate(count), tuple[float, ...], self._moved
        )
        return tuple(found[rank] for rank in self._places)

    def check(self) -> Wrong:
        found = self._backend.together(self._member.check, Wrong, self._moved)
        wrong = {at: found[rank] for at, rank in enumerate(self._places) if found[rank].count}
        if not wrong:
            return Wrong()
        place, one = next(iter(wrong.items()))
        return Wrong(sum(one.count for one in wrong.values()), place, one.first)


def spanned(buffer: Buffer) -> SpannedBuffer:
    if not isinstance(buffer, SpannedBuffer):
        raise TypeError(f"not a buffer of a rank: {buffer!r}")
    return buffer


def _shared(copy: Copy) -> SharedCopy:
    lent = {
        "source": None if copy.source is None else spanned(copy.source).lent,
        "destination": None if copy.destination is None else spanned(copy.destination).lent,
    }
    return SharedCopy(**(msgspec.structs.asdict(copy) | lent))

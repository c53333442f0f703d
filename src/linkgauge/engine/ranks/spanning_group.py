"""Groups of copies that span several ranks. Each rank carries out its part."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from functools import partial
from typing import cast

from msgspec.structs import replace

from linkgauge.backends import ACROSS_RANKS
from linkgauge.backends.protocol import (
    CollectingGroup,
    Copy,
    Gated,
    Group,
    SamplingPolicy,
    Timing,
    Wrong,
)
from linkgauge.backends.rank import open_at, spanned
from linkgauge.model.errors import LinkgaugeError, Unsupported
from linkgauge.model.operations.collective import Collective
from linkgauge.model.operations.operation import OperationName, named
from linkgauge.model.transfer import NIC_ENGINES, EngineKind

from . import passages
from .meeting_rank import MeetingRank
from .passages import FOUNDED, PASSING, EngineReach, leaves, passed, reached
from .starts import RankTiming, Starts, common_policy

_BY_BOTH: tuple[EngineKind, ...] = ("msg", *NIC_ENGINES)
"""The engines that need both ranks for their work."""


class SpanningGroup(Gated):
    """Copies of several ranks. The ranks start at an agreed time, or at once if only one rank has
    work. A copy that two ranks carry out together counts as work of both."""

    def __init__(
        self, backend: MeetingRank, copies: Sequence[Copy], operation: OperationName
    ) -> None:
        self._backend, self._own = backend, backend.own
        self._copies = copies
        self._moved = sum(copy.size for copy in copies)
        self._places = [copy.transfer.engine.owner.rank or 0 for copy in copies]
        ends = (end for copy in copies for end in (copy.source, copy.destination))
        self._buffers = [spanned(end) for end in ends if end is not None]
        self._group: Group | None = None
        """This rank's part of the group."""
        by_both = any(copy.transfer.engine.kind in _BY_BOTH for copy in copies)
        does = named(operation)
        awaits_all = does.from_one or (by_both and does.is_copy)
        self.starts = Starts(self._places, awaits_all=awaits_all)
        try:
            self._lend()
            groups = self._founding(operation)
            by_several = awaits_all or bool(groups) or len(set(self._places)) > 1
            # On a simulated machine all start together anyhow; MPI's collectives by its barrier.
            own = backend.simulates or (
                isinstance(operation, Collective) and backend.name == ACROSS_RANKS
            )
            self._is_timed = by_several and not own
            prepared = self._prepare(operation, groups)
        except BaseException:
            self.close()
            raise
        self.most_loops = min(most for _, most in prepared.values())
        self.policy = common_policy(
            [policy for policy, _ in prepared.values() if policy is not None]
        )

    def _lend(self) -> None:
        backend = self._backend
        if backend.simulates:
            return
        own = {
            at: one.handle for at, one in enumerate(self._buffers) if backend.is_mine(one.memory)
        }
        found = backend.together(lambda: own, dict[int, bytes], self._moved)
        for handles in found.values():
            for at, handle in handles.items():
                self._buffers[at].handle = handle
        windows = [one for one in dict.fromkeys(self._buffers) if self._own.is_window(one.engine)]
        if windows:
            backend.together(partial(backend.allocate_windows, windows), type(None), self._moved)

    def _founding(self, operation: OperationName) -> Mapping[int, passages.Group]:
        backend, copies = self._backend, self._copies
        if isinstance(operation, Collective):
            if backend.name not in FOUNDED:
                return {}
            groups = operation.groups(len(copies))
            return {n: tuple(self._places[at] for at in of) for n, of in enumerate(groups)}
        leaving = any(leaves(copy.transfer, backend.hosts) for copy in copies)
        if backend.name not in PASSING or not leaving:
            return {}
        look = partial(reached, self._own, copies, backend.rank, backend.hosts, backend.shared)
        found = backend.together(look, EngineReach, self._moved)
        return passed(copies, operation, found.values())

    def _prepare(
        self, operation: OperationName, groups: Mapping[int, passages.Group]
    ) -> Mapping[int, tuple[SamplingPolicy | None, int]]:
        """Prepares the copies in all ranks. Returns by rank the sampling policy (None for a rank
        that times no copy) and the most loops."""
        backend = self._backend
        tokens: tuple[bytes, ...] = ()
        if groups:
            made = backend.together(
                lambda: backend.tokens.of(groups.values(), backend.rank), dict[str, bytes]
            )
            known = {key: token for of in made.values() for key, token in of.items()}
            count = len(groups) if isinstance(operation, Collective) else len(self._copies)
            tokens = tuple(known[str(groups[n])] if n in groups else b"" for n in range(count))

        def prepare() -> tuple[SamplingPolicy | None, int]:
            self._own.found(tokens)
            self._group = self._own.prepare(self._copies, operation)
            policy = self._group.policy if backend.rank in self._places else None
            return policy, self._group.most_loops

        try:
            return backend.together(prepare, tuple[SamplingPolicy | None, int], self._moved)
        except Unsupported:
            raise
        except LinkgaugeError:
            backend.tokens.forget(groups.values())  # what they founded may be broken
            raise

    def arm(self, loops: int, batches: int = 1) -> None:
        super().arm(loops, batches)
        self._backend.attempt(lambda: self._part.arm(loops, batches))

    @property
    def _part(self) -> Group:
        assert self._group is not None  # noqa: S101  # it was prepared
        return self._group

    def wait(self) -> Timing:
        backend, starts = self._backend, self.starts
        loops = math.prod(self.pass_gate())
        late = starts.was_late if self._is_timed else None
        backend.together(lambda: None, type(None), self._moved * loops, late=late)
        at, ahead = backend.meeting.at, backend.meeting.ahead

        def run() -> RankTiming:
            opened = open_at(self._part, None if at is None else at + ahead)
            timing = replace(self._part.wait(), counters=None)
            return RankTiming(opened - ahead, timing, time.monotonic())

        found = backend.together(run, RankTiming, 2 * self._moved)
        backend.has_time(found[min(found)].now)
        return starts.timing(found, at, loops)

    def close(self) -> None:
        """Releases the memory of other ranks. From then on, their owners may free it."""
        super().close()
        if self._group is not None:
            self._group.close()
        self._own.leave()
        for buffer in dict.fromkeys(self._buffers):
            if self._own.is_window(buffer.engine) or not self._backend.is_mine(buffer.memory):
                buffer.free()


class SpanningCollective(SpanningGroup):
    """A collective between processes. Each of its transfers is one rank's share."""

    def iterations(self, count: int) -> tuple[tuple[float, ...], ...]:
        def own() -> tuple[float, ...]:
            return next(iter(cast("CollectingGroup", self._part).iterations(count)), ())

        found = self._backend.together(own, tuple[float, ...], self._moved)
        return tuple(found[rank] for rank in self._places)

    def check(self) -> Wrong:
        own = cast("CollectingGroup", self._part)
        found = self._backend.together(own.check, Wrong, self._moved)
        wrong = {at: found[rank] for at, rank in enumerate(self._places) if found[rank].count}
        if not wrong:
            return Wrong()
        place, one = next(iter(wrong.items()))
        return Wrong(sum(one.count for one in wrong.values()), place, one.first)

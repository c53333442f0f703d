"""The backend that rank 0 measures with: all members of the run as one.

The engine allocates, fills, prepares, samples and verifies with it as with any backend of its own
process; each call becomes a command to the ranks that it concerns. Nothing crosses between
processes while a clock runs: each transfer is timed by the member whose engine carries it out.
"""

from __future__ import annotations

import math
import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import count

import msgspec

from linkgauge.backends import ACROSS_RANKS, SIMULATED
from linkgauge.backends.member import Allocate, Allocated, Begin, Ended, Lent, Prepared, SharedCopy
from linkgauge.backends.protocol import Buffer, Copy, Gated, Pace, Pattern, Timing, Wrong
from linkgauge.machine.channel import Reason
from linkgauge.model.collective import Collective
from linkgauge.model.errors import LinkgaugeError, Phase, Unsupported
from linkgauge.model.machine import Device
from linkgauge.model.memory import NETWORK, Memory
from linkgauge.model.nics import nic_problem
from linkgauge.model.result import Placement
from linkgauge.model.transfer import NIC_ENGINES, Engine, EngineKind, Operation, Transfer

from . import messages
from .clocks import Clocks
from .links import Links
from .passages import Passages, Tokens

LATE_SECONDS = 1e-3
"""A start so long after the time that was told is late."""
FOUNDED = ("cuda", "torch")
"""Backends whose members found a group of ranks by a token of its first one."""
PASSING = ("cuda",)
"""Those whose members pass on copies to other machines, too."""
_BY_BOTH: tuple[EngineKind, ...] = ("msg", *NIC_ENGINES)
"""Engines whose work takes both ranks."""
APART = (1.0, 0.1, 0.01)
"""Shares of a sample's time: a figure reports the largest that the difference of its starts
exceeds."""


class RankBuffer:
    """A buffer in the memory of another rank."""

    def __init__(self, lent: Lent, placement: Placement, warnings: tuple[str, ...]) -> None:
        self.lent = lent
        self.memory = lent.memory
        self.size = lent.size
        self.warnings = warnings
        self._placement = placement
        self.release = _nothing

    def placement(self) -> Placement:
        return self._placement

    def free(self) -> None:
        release, self.release = self.release, _nothing
        release()


def _nothing() -> None:
    return None


class RankBackend:
    """The members of all ranks, opened; `devices` are theirs, and those of the memories `shared`
    are several ranks'."""

    def __init__(
        self,
        name: str,
        links: Links,
        devices: Iterable[Device],
        shared: Collection[str] = frozenset(),
    ) -> None:
        self.name = name
        self._links = links
        self._devices = tuple(devices)
        self._shared = shared
        self._numbers = count()
        self._refusals: dict[Transfer, str | Unsupported | None] = {}
        self._users: dict[int, set[int]] = {}
        """The ranks that know a buffer, by its number."""
        self._clocks = Clocks(links)
        self._group: RankGroup | None = None
        self._tokens = Tokens(links)
        self._passages = Passages(links, self.refusal)

    def devices(self) -> tuple[Device, ...]:
        return self._devices

    def refusal(self, transfer: Transfer) -> str | Unsupported | None:
        if transfer.engine.kind in NIC_ENGINES and self.name != NETWORK:
            return f"{transfer}: {transfer.engine.kind} is measured without engines of other kinds"
        is_part = transfer.engine.kind == "ccl" and self.name in FOUNDED
        if is_part and str(transfer.source) in self._shared:
            return "ranks share a GPU: NCCL needs one for each"
        places = (*transfer.memories, transfer.engine.owner)
        self._links.check_there(memory.rank or 0 for memory in places)
        if transfer.engine.owner.is_nic:
            problem = nic_problem(transfer, self._links.ranks)
            if problem is not None:
                return problem
        if transfer not in self._refusals:
            kind, asked = Reason | None, messages.Refuses(transfer)
            reason = self._links.one(_owner(transfer), asked, kind)  # type: ignore[arg-type]
            self._refusals[transfer] = None if reason is None else _refused(reason)
        return self._refusals[transfer]

    def remarks(self, transfer: Transfer) -> tuple[str, ...]:
        asked = messages.Remarks(transfer)
        said = self._links.one(_owner(transfer), asked, tuple[str, ...])
        if any(str(memory) in self._shared for memory in transfer.memories):
            said = (*said, "more ranks than devices: ranks share a device and take turns")
        return said if self._group is None else (*said, *self._group.remarks())

    def reach(self, memory: Memory, engine: Engine) -> object:
        """One-sided accesses need memory that MPI knows, engines of other machines such as the
        fabric has, UCX such as it has mapped for the same interfaces."""
        mapped = str(engine) if engine.kind in ("ucx", "rdma") else None
        return memory, engine.kind == "rma", self._passages.crosses(memory, engine), mapped

    def allocate(self, memory: Memory, size: int, engine: Engine) -> RankBuffer:
        number = next(self._numbers)
        owner = memory.rank or 0
        ranks = self._links.all if self._is_everyones(engine) else (owner,)
        abroad = self.name in PASSING and self._passages.crosses(memory, engine)
        command = Allocate(number, memory, size, engine, abroad)
        answers = self._links.ask(ranks, command, Allocated, size)
        self._users[number] = set(ranks)
        own = answers[owner]
        buffer = RankBuffer(Lent(number, memory, size, own.handle), own.placement, own.warnings)
        together = self._is_everyones(engine)
        buffer.release = lambda: self._free(number, owner, together)
        return buffer

    def _is_everyones(self, engine: Engine) -> bool:
        """Whether all ranks take part in an allocation: MPI's windows belong to all, and each
        member simulates the whole machine."""
        return self.name == SIMULATED or engine.kind == "rma"

    def _free(self, number: int, owner: int, together: bool) -> None:
        """Whoever opened it lets go of it before its owner frees it; what is everyone's is freed by
        all at once. A run that is over frees everything."""
        users = self._links.there(self._users.pop(number))
        for ranks in (users,) if together else (users - {owner}, users & {owner}):
            if not self._links.is_over:
                self._links.ask(ranks, messages.Free(number), type(None))

    def fill(self, buffer: Buffer, size: int, pattern: Pattern, seed: int, inverted: bool) -> None:
        lent = _own(buffer).lent
        command = messages.Fill(lent.number, size, int(pattern), seed, inverted)
        ranks = self._links.all if self.name == SIMULATED else (lent.memory.rank or 0,)
        self._links.ask(ranks, command, type(None), size)

    def first_mismatch(self, buffer: Buffer, size: int, pattern: Pattern, seed: int) -> int | None:
        lent = _own(buffer).lent
        command = messages.Mismatch(lent.number, size, int(pattern), seed)
        kind = int | None
        return self._links.one(lent.memory.rank or 0, command, kind, size)  # type: ignore[arg-type]

    def checksum(self, buffer: Buffer, size: int) -> int:
        lent = _own(buffer).lent
        command = messages.Checksum(lent.number, size)
        return self._links.one(lent.memory.rank or 0, command, int, size)

    def prepare(self, copies: Sequence[Copy], operation: Operation = "copy") -> RankGroup:
        shared = tuple(map(_shared, copies))
        ranks = self._parties(shared, operation)
        for copy in () if isinstance(operation, Collective) else shared:
            for lent in (copy.source, copy.destination):
                if lent is not None:
                    self._users[lent.number].update(ranks)
        # On a simulated machine all start together anyhow, by its own clock.
        clocks = None if self.name == SIMULATED else self._clocks
        if isinstance(operation, Collective):
            self._group = self._collective(ranks, shared, operation, clocks)
        else:
            self._group = self._copying(ranks, shared, operation, clocks)
        return self._group

    def _copying(
        self,
        ranks: Collection[int],
        copies: tuple[SharedCopy, ...],
        operation: Operation,
        clocks: Clocks | None,
    ) -> RankGroup:
        """Copies, each by its own engine or, where that reaches one memory alone, by NCCL."""
        passed = self._passages.found(copies, operation) if self.name in PASSING else {}
        with self._tokens.founding(tuple(passed.values())) as made:
            of = dict(zip(passed, made, strict=True))
            tokens = tuple(of.get(place, b"") for place in range(len(copies))) if of else ()
            command = messages.Prepare(copies, operation, tokens)
            return RankGroup(self._links, ranks, command, clocks)

    def _collective(
        self,
        ranks: Collection[int],
        copies: tuple[SharedCopy, ...],
        work: Collective,
        clocks: Clocks | None,
    ) -> RankCollective:
        """MPI's ranks start by a barrier of their own."""
        owners = [_owner(copy.transfer) for copy in copies]
        groups = tuple(tuple(owners[at] for at in group) for group in work.groups(len(owners)))
        clocks = None if self.name == ACROSS_RANKS else clocks
        with self._tokens.founding(groups if self.name in FOUNDED else ()) as tokens:
            command = messages.Prepare(copies, work, tokens)
            return RankCollective(self._links, ranks, command, clocks)

    def _parties(self, copies: Sequence[SharedCopy], operation: Operation) -> Collection[int]:
        """The ranks that a group concerns."""
        if self.name == SIMULATED or operation == "broadcast":
            return self._links.all
        memories = {m for c in copies for m in (*c.transfer.memories, c.transfer.engine.owner)}
        return sorted({memory.rank or 0 for memory in memories})

    def close(self) -> None:
        """Does nothing: members close what they have when the run is over."""


class SimRankBackend(RankBackend):
    """The same of a simulated machine, which has a clock of its own."""

    def clock(self) -> float:
        return self._links.one(0, messages.Virtual(), float)

    def enter(
        self, cells: Mapping[int, Sequence[Transfer]], phase: Phase, visit: int = 0, taken: int = 0
    ) -> None:
        known = {number: tuple(transfers) for number, transfers in cells.items()}
        command = messages.Enter(known, phase, visit, taken)
        self._links.ask(self._links.all, command, type(None))


class RankGroup(Gated):
    """Copies of several ranks. If several have work to do, they start together, by clocks that were
    compared, if any; one alone starts at once. What two ranks pass on is work of both."""

    def __init__(
        self,
        links: Links,
        ranks: Collection[int],
        command: messages.Prepare,
        clocks: Clocks | None,
    ) -> None:
        copies, operation = command.copies, command.operation
        self._links = links
        self._ranks = ranks
        self._count = len(copies)
        self._places = [_owner(copy.transfer) for copy in copies]
        self._owners = sorted(set(self._places))
        by_both = any(copy.transfer.engine.kind in _BY_BOTH for copy in copies)
        self._awaits_all = operation == "broadcast" or (by_both and operation == "copy")
        """Whether a rank that times nothing holds others up if it starts late: behind the warm-up
        of what NCCL passes on, of flags, and beside what engines reach by themselves, it does
        not."""
        by_several = self._awaits_all or bool(command.tokens) or len(self._owners) > 1
        self._clocks = clocks if by_several else None
        self._moved = sum(copy.size for copy in copies)
        self._apart: tuple[int, float] = (0, 0.0)
        """The most loops so far, and the greatest difference of their starts, as a share of the
        shortest copy's time for all of them."""
        try:
            prepared = links.ask(ranks, command, Prepared, self._moved)
        except LinkgaugeError:
            self.close()
            raise
        self.most_loops = min(one.most_loops for one in prepared.values())
        self.pace = _common([one.pace for one in prepared.values() if one.pace is not None])

    def arm(self, loops: int, laps: int = 1) -> None:
        super().arm(loops, laps)
        moved = self._moved * loops * laps
        self._links.ask(self._ranks, messages.Arm(loops, laps), type(None), moved)

    def wait(self) -> Timing:
        loops = math.prod(self.pass_gate())
        offsets = dict.fromkeys(self._ranks, 0.0)
        commands: dict[int, messages.Command] = dict.fromkeys(self._ranks, Begin())
        at = 0.0
        if self._clocks is not None:
            offsets = self._clocks.ahead(self._ranks)
            at = time.monotonic() + self._clocks.lead
            commands = {rank: Begin(at + offsets[rank]) for rank in self._ranks}
        ended = self._links.ask_each(commands, Ended, self._moved * loops)
        opened = {rank: one.opened - offsets[rank] for rank, one in ended.items()}
        if self._clocks is not None:
            self._judge_start(loops, opened, ended)
            if max(opened.values()) - at > LATE_SECONDS:
                self._clocks.was_late()
        return self._timing(ended, opened)

    def _judge_start(
        self, loops: int, opened: Mapping[int, float], ended: Mapping[int, Ended]
    ) -> None:
        """How far apart they started: the gates, and behind them the copies."""
        starts = [
            opened[rank] + min((times[0] for times in one.progress.values()), default=0.0)
            for rank, one in ended.items()
            if one.seconds or self._awaits_all
        ]
        shortest = min(s for one in ended.values() for s in one.seconds.values())
        apart = (max(starts) - min(starts)) / shortest
        most, before = self._apart
        if loops >= most:  # those of the warm-up do not count
            self._apart = loops, max(apart, before) if loops == most else apart

    def _timing(self, ended: Mapping[int, Ended], opened: Mapping[int, float]) -> Timing:
        seconds = [0.0] * self._count
        checksums: list[int | None] = [None] * self._count
        progress: list[tuple[float, ...]] = [()] * self._count
        first = min(opened[rank] for rank in self._owners)
        for rank, one in ended.items():
            for place, own in one.seconds.items():
                seconds[place] = own
                checksums[place] = one.checksums.get(place)
                since = 0.0 if self._clocks is None else opened[rank] - first
                times = one.progress.get(place, (0.0, own))
                progress[place] = tuple(since + when for when in times)
        span = max(times[-1] for times in progress) - min(times[0] for times in progress)
        return Timing(tuple(seconds), span, tuple(checksums), tuple(progress))

    def remarks(self) -> tuple[str, ...]:
        """What a reader of the figure must know of the starts."""
        passed = next((share for share in APART if self._apart[1] > share), None)
        if passed is None:
            return ()
        return (f"ranks started more than {passed:.0%} of a sample's time apart",)

    def close(self) -> None:
        super().close()
        if not self._links.is_over:
            self._links.ask(self._links.there(self._ranks), messages.Close(), type(None))


class RankCollective(RankGroup):
    """A collective, of which each copy is the part of a rank."""

    def iterations(self, count: int) -> tuple[tuple[float, ...], ...]:
        found = self._links.ask(
            self._ranks, messages.Iterate(count), tuple[float, ...], self._moved * count
        )
        return tuple(found[rank] for rank in self._places)

    def check(self) -> Wrong:
        found = self._links.ask(self._ranks, messages.Check(), Wrong, self._moved)
        wrong = {at: found[rank] for at, rank in enumerate(self._places) if found[rank].count}
        if not wrong:
            return Wrong()
        place, one = next(iter(wrong.items()))
        return Wrong(sum(one.count for one in wrong.values()), place, one.first)


def _common(paces: Sequence[Pace]) -> Pace:
    """A pace that suits all of them."""
    if len(paces) == 1:
        return paces[0]
    return Pace(
        seconds=max(pace.seconds for pace in paces),
        loops=max(pace.loops for pace in paces),
        most=min(pace.most for pace in paces),
        steps=paces[0].steps,
        rehearsed=paces[0].rehearsed,
    )


def _owner(transfer: Transfer) -> int:
    """The rank that carries a transfer out."""
    return transfer.engine.owner.rank or 0


def _own(buffer: Buffer) -> RankBuffer:
    if not isinstance(buffer, RankBuffer):
        raise TypeError(f"not a buffer of a rank: {buffer!r}")
    return buffer


def _shared(copy: Copy) -> SharedCopy:
    lent = {
        "source": None if copy.source is None else _own(copy.source).lent,
        "destination": None if copy.destination is None else _own(copy.destination).lent,
    }
    return SharedCopy(**(msgspec.structs.asdict(copy) | lent))


def _refused(reason: Reason) -> str | Unsupported:
    if reason.kind == "unsupported":
        return reason.text
    refused = Unsupported(reason.text)
    refused.kind = reason.kind
    return refused

"""Backends of ranks, which are processes that have one device each and open others' memory."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Protocol, TypeVar, cast, runtime_checkable

from msgspec.structs import replace

from linkgauge.model.documents.result import Placement
from linkgauge.model.errors import BackendError, Unsupported
from linkgauge.model.hardware.inventory import Interface, Inventory
from linkgauge.model.hardware.machine import Device
from linkgauge.model.memory import Memory
from linkgauge.model.operations.operation import OperationName
from linkgauge.model.transfer import Engine, Transfer

from .offering import own
from .protocol import (
    Backend,
    Buffer,
    CollectingGroup,
    Copy,
    Gated,
    Group,
    HasTelemetry,
    Pattern,
    SamplingPolicy,
    Timing,
    Wrong,
    follows,
)

_T = TypeVar("_T")

GATE_SPIN = 1e-3
"""A rank stops sleeping this many seconds before the time of a start."""


class SpannedBuffer:
    """A rank's buffer. `here` is None in processes that have not opened the buffer's `handle`."""

    warnings: tuple[str, ...] = ()

    def __init__(self, memory: Memory, size: int, engine: Engine) -> None:
        self.memory, self.size, self.engine = memory, size, engine
        self.here: Buffer | None = None
        self.handle = b""
        self.placed = Placement("", 0)

    def placement(self) -> Placement:
        return self.placed

    def free(self) -> None:
        here, self.here = self.here, None
        if here is not None:
            here.free()


def spanned(buffer: Buffer | None) -> SpannedBuffer:
    return own(buffer, SpannedBuffer, "rank's")


def held(buffer: Buffer | None) -> Buffer:
    """Returns the buffer in this process. Raises BackendError if there is none."""
    own = spanned(buffer)
    if own.here is None:
        raise BackendError("buffer", f"{own.memory} is not allocated here")
    return own.here


def crosses(hosts: Sequence[str], memory: Memory, engine: Engine) -> bool:
    return hosts[memory.rank or 0] != hosts[engine.owner.rank or 0]


class RankBackend(Backend, Protocol):
    """The backend of one rank. All buffers are `SpannedBuffer`s, and a group reports only the
    copies by this rank's engine. If `others_wait` is true, other ranks may wait until this rank
    calls `make_progress`, even if it has no work. `found` sets `tokens`."""

    others_wait: bool = False
    tokens: Sequence[bytes] = ()
    nics: Sequence[Interface] = ()
    """The network interfaces of the rank's machine, if they are measured."""
    gpu: Device | None = None
    """The GPU that is measured together with network interfaces, if requested."""
    lacks_gpu: str | None = None
    """The reason why there is no GPU."""

    def make_progress(self) -> None:
        """Lets the library move bytes for other ranks, if it only does so during calls."""
        return

    def look(self) -> Inventory:
        """Returns the rank's accelerators, named as in this process."""
        return Inventory()

    def counted(self) -> dict[str, int]:
        """Returns how much each counter of TCP (TCP_INFO) rose in the last group."""
        return {}

    def remarks(self, transfer: Transfer) -> tuple[str, ...]: ...
    def is_window(self, engine: Engine) -> bool:
        """Whether all ranks must allocate memory for this engine together, by `windows`."""
        return False

    def windows(
        self, asked: Sequence[Buffer], ranks: tuple[int, ...], repetition: int
    ) -> Sequence[Buffer]:
        """Allocates buffers like `asked` on all `ranks` together, for this repetition only."""
        raise Unsupported("this backend allocates nothing together")

    def handle(self, buffer: Buffer) -> bytes:
        """Returns a handle by which other ranks open the buffer; empty if none is needed."""
        return b""

    def separate(self, copies: Sequence[Copy]) -> tuple[str | None, ...]:
        """Returns for each copy why this rank's engine does not reach both memories, or None."""
        return (None,) * len(copies)

    def token(self) -> bytes:
        """Returns a new token. Ranks that receive the same token form a group."""
        raise Unsupported("this backend founds no groups of ranks")

    def found(self, tokens: Sequence[bytes]) -> None:
        self.tokens = tokens

    def leave(self) -> None:
        """Ends the last group between ranks. Each rank calls this, even if it prepared nothing."""
        return


@runtime_checkable
class Punctual(Protocol):
    def open_at(self, at: float | None) -> float:
        """Opens the gate at `at` (monotonic clock; None: now). Returns the actual time."""


def open_at(group: Group, at: float | None) -> float:
    """Opens a group's gate at a time (None: at once), even if the group is not `Punctual`."""
    if follows(group, Punctual):  # type: ignore[type-abstract]
        return group.open_at(at)
    opened = await_time(at)
    group.open()
    return opened


def await_time(at: float | None) -> float:
    if at is not None:
        while (left := at - time.monotonic()) > 0:
            time.sleep(max(0.0, left - GATE_SPIN))  # at 0 it lets other threads go on
    return time.monotonic()


class IdlePart(Gated):
    """A group without work, for a rank whose engine carries out no copy."""

    policy = SamplingPolicy()

    def wait(self) -> Timing:
        self.pass_gate()
        return Timing((), 0.0)


class OwnCopies:
    """A group that reports only the copies at `places` (indices). Other ranks report the others."""

    def __init__(self, group: Group, places: Sequence[int]) -> None:
        self._group, self._places = group, places
        self.policy, self.most_loops = group.policy, group.most_loops
        self.arm, self.open, self.close = group.arm, group.open, group.close

    def wait(self) -> Timing:
        timing = self._group.wait()
        return Timing(
            self._own(timing.seconds),
            timing.span,
            self._own(timing.checksums),
            self._own(timing.progress),
        )

    def _own(self, values: Sequence[_T]) -> tuple[_T, ...]:
        return tuple(values[place] for place in self._places) if values else ()

    def iterations(self, count: int) -> tuple[tuple[float, ...], ...]:
        return self._own(cast("CollectingGroup", self._group).iterations(count))

    def check(self) -> Wrong:
        found = cast("CollectingGroup", self._group).check()
        return found if found.rank in self._places else Wrong()


class OfProcess(RankBackend):
    """A rank with one `device`. Its `backend`, which knows no ranks, measures the device."""

    def __init__(self, rank: int, backend: Backend, device: Device) -> None:
        self.name = backend.name
        self.rank = rank
        self.backend = backend
        self._device = device

    def devices(self) -> tuple[Device, ...]:
        return (replace(self._device, memory=f"{self._device.memory}@{self.rank}"),)

    def look(self) -> Inventory:
        found = self.backend.inventory() if follows(self.backend, HasTelemetry) else ()  # type: ignore[type-abstract]
        return Inventory(accelerators=found)

    def local(self, memory: Memory) -> Memory:
        """Returns a memory of this rank without its `@RANK`, or another memory unchanged."""
        return memory.unranked if memory.rank == self.rank else memory

    def transfer(self, transfer: Transfer) -> Transfer:
        return transfer.placed(self.local)

    def refusal(self, transfer: Transfer) -> str | Unsupported | None:
        return self.backend.refusal(self.transfer(transfer))

    def remarks(self, transfer: Transfer) -> tuple[str, ...]:
        return tuple(map(str, self.backend.remarks(self.transfer(transfer))))

    def _engine(self, memory: Memory, engine: Engine) -> Engine:
        # Another rank's engine becomes one of the same kind at the memory's device.
        owner = self.local(engine.owner)
        if owner.rank is not None:
            owner = self.local(memory).place
        return Engine(owner, engine.kind, engine.count)

    def reach(self, memory: Memory, engine: Engine) -> object:
        return self.backend.reach(self.local(memory), self._engine(memory, engine))

    def allocate(self, memory: Memory, size: int, engine: Engine) -> Buffer:
        return self.backend.allocate(self.local(memory), size, self._engine(memory, engine))

    def fill(self, buffer: Buffer, size: int, pattern: Pattern, seed: int, inverted: bool) -> None:
        self.backend.fill(buffer, size, pattern, seed, inverted)

    def first_mismatch(self, buffer: Buffer, size: int, pattern: Pattern, seed: int) -> int | None:
        return self.backend.first_mismatch(buffer, size, pattern, seed)

    def checksum(self, buffer: Buffer, size: int) -> int:
        return self.backend.checksum(buffer, size)

    def is_mine(self, copy: Copy) -> bool:
        return copy.transfer.engine.owner.rank == self.rank

    def places(self, copies: Sequence[Copy]) -> list[int]:
        return [place for place, copy in enumerate(copies) if self.is_mine(copy)]

    def prepare(self, copies: Sequence[Copy], operation: OperationName = "copy") -> Group:
        mine = [self.copy(copy) for copy in filter(self.is_mine, copies)]
        return self.backend.prepare(mine, operation) if mine else IdlePart()

    def copy(self, copy: Copy) -> Copy:
        return replace(
            copy,
            transfer=self.transfer(copy.transfer),
            source=self.opened(copy.source),
            destination=self.opened(copy.destination),
        )

    def opened(self, buffer: Buffer | None) -> Buffer | None:
        return None if buffer is None else held(buffer)

    def close(self) -> None:
        self.backend.close()

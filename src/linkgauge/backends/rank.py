"""The backend of one of several ranks. Such a backend also gives the other ranks of a cell access
to its memory, and opens their memory.

A rank has one device. In the notation of the run, the memory of rank 2 is `cuda:0@2`. The backend
itself knows nothing of ranks, and calls the same memory `cuda:0`."""

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

from .protocol import (
    Backend,
    Buffer,
    CollectingGroup,
    Copy,
    Gated,
    Group,
    HasTelemetry,
    Pace,
    Pattern,
    Timing,
    Wrong,
    follows,
)

_T = TypeVar("_T")

GATE_SPIN = 1e-3
"""Seconds before a gate's time at which a rank stops sleeping."""


class SpannedBuffer:
    """A buffer of a cell that several ranks measure. `here` is the memory of the buffer in this
    rank: own memory, or another rank's memory, opened by `handle`. Without `here`, the buffer is
    only a name."""

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
    if not isinstance(buffer, SpannedBuffer):
        raise TypeError(f"not a buffer of a rank: {buffer!r}")
    return buffer


def held(buffer: Buffer | None) -> Buffer:
    """Returns the memory of the buffer in this rank. Raises BackendError if there is none."""
    own = spanned(buffer)
    if own.here is None:
        raise BackendError("buffer", f"{own.memory} is not allocated here")
    return own.here


def crosses(hosts: Sequence[str], memory: Memory, engine: Engine) -> bool:
    """Whether the memory is on another machine than the engine's owner."""
    return hosts[memory.rank or 0] != hosts[engine.owner.rank or 0]


class RankBackend(Backend, Protocol):
    """A rank's backend. The buffers of copies are `SpannedBuffer`s. Groups time the copies whose
    engines belong to this rank, in the order of the copies. `others_wait` says that calls of other
    ranks may not end before this rank makes progress, even if this rank is idle."""

    others_wait: bool = False
    tokens: Sequence[bytes] = ()
    nics: Sequence[Interface] = ()
    """The network interfaces of the rank's machine, if the rank measures with them."""
    gpu: Device | None = None
    """The GPU that is measured together with the network interfaces, on request."""
    lacks_gpu: str | None = None
    """The reason why there is no GPU."""

    def make_progress(self) -> None:
        """Makes progress on communication. By default does nothing, because no rank depends on
        progress."""
        return

    def look(self) -> Inventory:
        """Returns the accelerators that this process sees, under this process's own names."""
        return Inventory()

    def remarks(self, transfer: Transfer) -> tuple[str, ...]: ...
    def is_window(self, engine: Engine) -> bool:
        """Whether all ranks of a cell allocate memory for this engine together, by `windows`."""
        return False

    def windows(self, asked: Sequence[Buffer], ranks: tuple[int, ...]) -> Sequence[Buffer]:
        """Allocates memory for each of these buffers. All ranks in `ranks` call this method at the
        same time."""
        raise Unsupported("this backend allocates nothing together")

    def handle(self, buffer: Buffer) -> bytes:
        """Returns the handle by which other ranks open a buffer of this rank. The handle is empty
        if other ranks need none."""
        return b""

    def apart(self, copies: Sequence[Copy]) -> tuple[str | None, ...]:
        """Returns for each copy why this rank's engine cannot reach both memories, or None if it
        can."""
        return (None,) * len(copies)

    def token(self) -> bytes:
        """Returns a new token that founds a group of ranks. All ranks of the group receive the
        token before they prepare."""
        raise Unsupported("this backend founds no groups of ranks")

    def found(self, tokens: Sequence[bytes]) -> None:
        """Sets the tokens of the groups of ranks that are prepared next."""
        self.tokens = tokens

    def leave(self) -> None:
        """Ends the last prepared group in all ranks, even if preparing failed. By default does
        nothing."""
        return


@runtime_checkable
class Punctual(Protocol):
    """A group that itself waits for the time at which the gate is to open."""

    def open_at(self, at: float | None) -> float:
        """Opens the gate at the time `at`, or at once if `at` is None. Returns when the gate
        opened, by the monotonic clock."""
        ...


def open_at(group: Group, at: float | None) -> float:
    """Opens the gate when the monotonic clock reads `at`. Returns the clock's reading at that
    moment."""
    if follows(group, Punctual):  # type: ignore[type-abstract]
        return group.open_at(at)
    opened = await_time(at)
    group.open()
    return opened


def await_time(at: float | None) -> float:
    """Waits until the monotonic clock reads `at`. Returns the clock's reading at that moment."""
    if at is not None:
        while (left := at - time.monotonic()) > 0:
            time.sleep(max(0.0, left - GATE_SPIN))  # at 0 it lets other threads go on
    return time.monotonic()


class IdlePart(Gated):
    """The part of a rank that has no work while other ranks access its memory."""

    pace = Pace()

    def wait(self) -> Timing:
        self.pass_gate()
        return Timing((), 0.0)


class OwnCopies:
    """A group that reports only the copies at these places, which belong to this rank."""

    def __init__(self, group: Group, places: Sequence[int]) -> None:
        self._group, self._places = group, places
        self.pace, self.most_loops = group.pace, group.most_loops
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
        """Returns the wrong elements if they belong to this rank's copies. Other ranks report their
        own wrong elements."""
        found = cast("CollectingGroup", self._group).check()
        return found if found.rank in self._places else Wrong()


class OfProcess(RankBackend):
    """A backend without knowledge of ranks, whose single device becomes the device of a rank.
    Memories of other ranks keep their rank."""

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
        """Returns a memory as the backend itself names it."""
        return memory.unranked if memory.rank == self.rank else memory

    def transfer(self, transfer: Transfer) -> Transfer:
        return transfer.placed(self.local)

    def refusal(self, transfer: Transfer) -> str | Unsupported | None:
        return self.backend.refusal(self.transfer(transfer))

    def remarks(self, transfer: Transfer) -> tuple[str, ...]:
        return tuple(map(str, self.backend.remarks(self.transfer(transfer))))

    def _engine(self, memory: Memory, engine: Engine) -> Engine:
        """Returns the engine as the backend itself names it. An engine of another rank becomes an
        engine of the memory's own device."""
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
        """Whether this rank carries out the copy and times it."""
        return copy.transfer.engine.owner.rank == self.rank

    def places(self, copies: Sequence[Copy]) -> list[int]:
        """Returns the places of this rank's own copies."""
        return [place for place, copy in enumerate(copies) if self.is_mine(copy)]

    def prepare(self, copies: Sequence[Copy], operation: OperationName = "copy") -> Group:
        mine = [self.copy(copy) for copy in filter(self.is_mine, copies)]
        return self.backend.prepare(mine, operation) if mine else IdlePart()

    def copy(self, copy: Copy) -> Copy:
        """Returns the copy in the form in which the backend carries it out."""
        return replace(
            copy,
            transfer=self.transfer(copy.transfer),
            source=self.opened(copy.source),
            destination=self.opened(copy.destination),
        )

    def opened(self, buffer: Buffer | None) -> Buffer | None:
        """Returns the memory of the buffer in this rank. Raises BackendError if there is none."""
        return None if buffer is None else held(buffer)

    def close(self) -> None:
        self.backend.close()

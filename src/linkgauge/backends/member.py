"""What a rank measures with: a member of the run, which carries out its part of what rank 0 asks.

A member has one device. Its own memory is `cuda:0@2` in the run's notation, where 2 is its rank,
and `cuda:0` to the backend that it holds.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Protocol, TypeVar, runtime_checkable

import msgspec

from linkgauge.backends.protocol import (
    Backend,
    Buffer,
    Collecting,
    Copy,
    Group,
    HasTelemetry,
    Pace,
    Pattern,
    Wrong,
    follows,
)
from linkgauge.model.errors import BackendError, Unsupported
from linkgauge.model.inventory import Interface, Inventory
from linkgauge.model.machine import Device
from linkgauge.model.memory import Memory
from linkgauge.model.operation import OperationName
from linkgauge.model.result import Placement
from linkgauge.model.transfer import Engine, Transfer

_T = TypeVar("_T")

GATE_SPIN = 1e-3
"""Seconds before a gate's time at which a member stops sleeping."""


class Allocate(msgspec.Struct, frozen=True, tag=True):
    """Allocate buffer `number`, for this engine, which is on another machine if the memory is to be
    reached from `abroad`. Answered by `Allocated`."""

    number: int
    memory: Memory
    size: int
    engine: Engine
    abroad: bool = False
    parties: tuple[int, ...] = ()


class Allocated(msgspec.Struct, frozen=True):
    """`handle` is what other members open the buffer with; empty if they need none."""

    placement: Placement
    warnings: tuple[str, ...]
    handle: bytes


class Lent(msgspec.Struct, frozen=True):
    """A buffer as copies name it."""

    number: int
    memory: Memory
    size: int
    handle: bytes


class SharedCopy(msgspec.Struct, frozen=True):
    """A `Copy` whose buffers are several ranks'."""

    transfer: Transfer
    source: Lent | None
    destination: Lent | None
    size: int
    seed: int
    interference: bool = False
    endless: bool = False
    tracked: bool = False
    warm_ups: int | None = None


class Prepared(msgspec.Struct, frozen=True):
    """The pace is null if the member times none of the copies."""

    pace: Pace | None = None
    most_loops: int = 1 << 30


class Begin(msgspec.Struct, frozen=True, tag=True):
    """Open the gate when the member's own clock reads `at` (null: at once), and wait for the end.
    Answered by `Ended`."""

    at: float | None = None


class Ended(msgspec.Struct, frozen=True):
    """When the gate opened, by the member's own clock, and of each copy that the member times, by
    its place: its seconds, its checksum, and its progress since the gate opened."""

    opened: float
    seconds: Mapping[int, float]
    checksums: Mapping[int, int | None] = {}
    progress: Mapping[int, tuple[float, ...]] = {}


class Member(Protocol):
    """Buffers are known by their number in the whole run. `others_wait` says that calls of other
    members may not end before this one makes progress, even if it is idle."""

    others_wait: bool = False

    def make_progress(self) -> None:
        """Nobody depends on that."""
        return

    def look(self) -> Inventory:
        """The accelerators that this process sees, by its own names."""
        return Inventory()

    def token(self) -> bytes:
        """What founds a group of ranks, to all of which it comes when they prepare a collective."""
        raise Unsupported("this backend founds no groups of ranks")

    def reach(self, copies: Sequence[SharedCopy]) -> tuple[str | None, ...]:
        """Of each copy why the member's engine does not reach both memories; None if it does."""
        return (None,) * len(copies)

    def iterate(self, count: int) -> tuple[float, ...]:
        """The seconds of so many single iterations of a collective. Raises BackendError if none is
        prepared."""
        raise BackendError("collective", "none is prepared")

    def check(self) -> Wrong:
        """What is wrong with one's own result of it."""
        raise BackendError("collective", "none is prepared")

    def device(self) -> Device: ...
    def refusal(self, transfer: Transfer) -> str | Unsupported | None: ...
    def remarks(self, transfer: Transfer) -> tuple[str, ...]: ...
    def allocate(self, command: Allocate) -> Allocated: ...
    def free(self, number: int) -> None: ...
    def fill(self, number: int, size: int, pattern: Pattern, seed: int, inverted: bool) -> None: ...
    def first_mismatch(self, number: int, size: int, pattern: Pattern, seed: int) -> int | None: ...
    def checksum(self, number: int, size: int) -> int: ...
    def prepare(
        self, copies: Sequence[SharedCopy], operation: OperationName, tokens: Sequence[bytes] = ()
    ) -> Prepared: ...
    def arm(self, loops: int, laps: int) -> None: ...
    def begin(self, command: Begin) -> Ended: ...
    def close_group(self) -> None: ...
    def close(self) -> None: ...


@runtime_checkable
class HasInterfaces(Protocol):
    """A member that measures with the network interfaces of its machine and, if it was asked to,
    with its GPU: `lacks_gpu` says why it has none."""

    nics: Sequence[Interface]
    gpu: Device | None
    lacks_gpu: str | None


def await_time(at: float | None) -> float:
    """Waits until the monotonic clock reads this, and returns what it reads then."""
    if at is not None:
        while (left := at - time.monotonic()) > 0:
            time.sleep(max(0.0, left - GATE_SPIN))  # at 0 it lets other threads go on
    return time.monotonic()


class BackendMember(Member):
    """A member with a backend of this process. `buffers` are those that it allocated, and those of
    others that it has opened."""

    def __init__(self, rank: int, backend: Backend, device: Device) -> None:
        self.rank = rank
        self.backend = backend
        self.buffers: dict[int, Buffer] = {}
        self._device = device
        self._group: Group | None = None
        self._timed: tuple[tuple[int, int], ...] = ()
        """The places of the copies that this member times: in the cell, and in its group."""

    def device(self) -> Device:
        memory = f"{self._device.memory}@{self.rank}"
        return msgspec.structs.replace(self._device, memory=memory)

    def look(self) -> Inventory:
        found = self.backend.inventory() if follows(self.backend, HasTelemetry) else ()  # type: ignore[type-abstract]
        return Inventory(accelerators=found)

    def local(self, memory: Memory) -> Memory:
        """A memory as its backend knows it; another rank's keeps its rank."""
        return memory.unranked if memory.rank == self.rank else memory

    def transfer(self, transfer: Transfer) -> Transfer:
        return transfer.placed(self.local)

    def refusal(self, transfer: Transfer) -> str | Unsupported | None:
        return self.backend.refusal(self.transfer(transfer))

    def remarks(self, transfer: Transfer) -> tuple[str, ...]:
        return tuple(map(str, self.backend.remarks(self.transfer(transfer))))

    def allocate(self, command: Allocate) -> Allocated:
        memory = self.local(command.memory)
        owner = self.local(command.engine.owner)
        if owner.rank is not None:  # another rank's engine reaches it through its own device
            owner = memory.place
        engine = Engine(owner, command.engine.kind, command.engine.count)
        buffer = self.allocated(memory, engine, command)
        self.buffers[command.number] = buffer
        placement = msgspec.structs.replace(buffer.placement(), memory=str(command.memory))
        return Allocated(placement, buffer.warnings, self.handle(buffer))

    def allocated(self, memory: Memory, engine: Engine, command: Allocate) -> Buffer:
        """A buffer as its backend, which knows the memory and the engine by these names, has it."""
        return self.backend.allocate(memory, command.size, engine)

    def handle(self, buffer: Buffer) -> bytes:
        """What other members open the buffer with."""
        return b""

    def free(self, number: int) -> None:
        buffer = self.buffers.pop(number, None)
        if buffer is not None:
            buffer.free()

    def fill(self, number: int, size: int, pattern: Pattern, seed: int, inverted: bool) -> None:
        self.backend.fill(self._known(number), size, pattern, seed, inverted)

    def first_mismatch(self, number: int, size: int, pattern: Pattern, seed: int) -> int | None:
        return self.backend.first_mismatch(self._known(number), size, pattern, seed)

    def checksum(self, number: int, size: int) -> int:
        return self.backend.checksum(self._known(number), size)

    def _known(self, number: int) -> Buffer:
        if number not in self.buffers:
            raise BackendError("buffer", f"number {number} is not allocated here")
        return self.buffers[number]

    def is_mine(self, copy: SharedCopy) -> bool:
        """Whether this member carries the copy out, and times it."""
        return copy.transfer.engine.owner.rank == self.rank

    def prepare(
        self, copies: Sequence[SharedCopy], operation: OperationName, tokens: Sequence[bytes] = ()
    ) -> Prepared:
        self.close_group()
        places = [place for place, copy in enumerate(copies) if self.is_mine(copy)]
        self._timed = tuple((place, number) for number, place in enumerate(places))
        if not places:
            return Prepared()
        return self.use(self.backend.prepare([self.copy(copies[p]) for p in places], operation))

    def use(self, group: Group) -> Prepared:
        """This group is what the next samples are of."""
        self._group = group
        return Prepared(group.pace, group.most_loops)

    def copy(self, copy: SharedCopy) -> Copy:
        """The copy as the backend carries it out."""
        there = {
            "transfer": self.transfer(copy.transfer),
            "source": self.opened(copy.source),
            "destination": self.opened(copy.destination),
        }
        return Copy(**(msgspec.structs.asdict(copy) | there))

    def opened(self, lent: Lent | None) -> Buffer | None:
        """The buffer that a copy names; raises BackendError for one that cannot be had here."""
        return None if lent is None else self._known(lent.number)

    def arm(self, loops: int, laps: int) -> None:
        if self._group is not None:
            self._group.arm(loops, laps)

    def begin(self, command: Begin) -> Ended:
        opened = await_time(command.at)
        if self._group is None:
            return Ended(opened, {})
        self._group.open()
        timing = self._group.wait()
        return Ended(
            opened,
            {place: timing.seconds[number] for place, number in self._timed},
            _of(self._timed, timing.checksums),
            _of(self._timed, timing.progress),
        )

    def iterate(self, count: int) -> tuple[float, ...]:
        times = self._collecting().iterations(count)
        return next((times[number] for _, number in self._timed), ())

    def check(self) -> Wrong:
        return self._collecting().check()

    def _collecting(self) -> Collecting:
        if self._group is None or not follows(self._group, Collecting):  # type: ignore[type-abstract]
            raise BackendError("collective", "none is prepared")
        return self._group

    def close_group(self) -> None:
        group, self._group = self._group, None
        self._timed = ()
        if group is not None:
            group.close()

    def close(self) -> None:
        self.close_group()
        for number in tuple(self.buffers):
            self.free(number)
        self.backend.close()


def _of(timed: Sequence[tuple[int, int]], values: Sequence[_T]) -> Mapping[int, _T]:
    return {place: values[number] for place, number in timed if number < len(values)}

"""The protocol of a backend: devices, buffers, groups of transfers behind a gate.

A backend is one file. The engine drives it so, for each cell:

    refusal(transfer)              a reason, before anything is allocated
    allocate(memory, size, …)      buffers, kept and used again by later cells
    fill(buffer, …)                a pattern in the source, its complement in the destination
    prepare(copies, operation)     a Group; then for each sample
        arm(loops, laps)               everything is enqueued, behind a closed gate
        open()                         the gate: all transfers start together
        wait()                         the Timing
    first_mismatch(buffer, …)      every byte compared
    close()

Allocating, gating and verifying are calls of their own, so that a controller can join several
processes in one cell. Native errors enter here as BackendError, with the call's name;
what a machine cannot do is Unsupported; memory that could not be had is AllocationError.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping, Sequence
from enum import IntEnum
from typing import Literal, Protocol, TypeGuard, TypeVar, runtime_checkable

import msgspec

from linkgauge.model.errors import BackendError, Unsupported
from linkgauge.model.inventory import Accelerator, Telemetry
from linkgauge.model.machine import Device
from linkgauge.model.result import Placement
from linkgauge.model.transfer import Engine, Memory, Operation, Transfer

Phase = Literal["plan", "allocate", "warm up", "fill", "measure", "verify"]
"""What is being done to a cell, in this order."""


class Pattern(IntEnum):
    """What a buffer holds. Word i (64-bit, little-endian) of seed s is
    x = (i + s · 0xD1B54A32D192ED03) · 0x9E3779B97F4A7C15, then x ^= x >> 29, modulo 2^64."""

    WORDS = 0
    """Word i at word i."""
    CONSTANT = 1
    """Word 0 everywhere: what a pure write stores."""
    SPLIT = 2
    """Odd chunks hold WORDS and even ones its complement: both buffers after a `<->`."""


def seed_of(word: int) -> int:
    """The seed whose word 0 is `word`: Pattern's formula backwards."""
    x = word
    for _ in range(2):  # each round sets 29 more bits right, and the highest 29 are
        x = word ^ x >> 29
    factors = 0xD1B54A32D192ED03 * 0x9E3779B97F4A7C15
    return x * pow(factors, -1, 1 << 64) % (1 << 64)


class Buffer(Protocol):
    """Memory that a backend allocated."""

    @property
    def memory(self) -> Memory: ...
    @property
    def size(self) -> int: ...
    @property
    def warnings(self) -> tuple[str, ...]: ...
    def placement(self) -> Placement: ...
    def free(self) -> None: ...


@runtime_checkable
class Addressed(Protocol):
    """A buffer whose bytes stand at one address of this process for as long as it lives: other
    backends' engines may use it, too."""

    @property
    def address(self) -> int: ...


class Copy(msgspec.Struct, frozen=True):
    """A transfer with its buffers: `size` bytes of each, seeded by `seed`. A `null` has none. All
    that is asked of `interference` is to outlast the first copy of its group. An `endless` copy, by
    host threads only, goes on until the other copies of its group have ended, or where there are
    none until somebody waits: its seconds are those that all loops would have taken. Of a `tracked`
    one, progress within a launch that carries out all loops is wanted, too.

    `warm_ups` are loops behind the gate before the clock starts: null leaves them to the backend,
    and they end before any copy of the group starts; as many as given are nvbandwidth's, which
    those of other copies may outlast. Where the backend has a gate of its own making, they do not
    count."""

    transfer: Transfer
    source: Buffer | None
    destination: Buffer | None
    size: int
    seed: int
    interference: bool = False
    endless: bool = False
    tracked: bool = False
    warm_ups: int | None = None


class Timing(msgspec.Struct, frozen=True):
    """Seconds that all loops of each copy took, and of the whole group, first start to last end.

    `checksums` holds the xor of the 64-bit words that a pure read saw in its last loop, None for
    other copies. `progress` holds, for each copy, its start and then the end of each of its laps,
    in seconds since the gate opened; where a copy cannot tell its laps, its start and its end.
    """

    seconds: tuple[float, ...]
    span: float
    checksums: tuple[int | None, ...] = ()
    progress: tuple[tuple[float, ...], ...] = ()


MOST_LAPS = 64
"""Laps at most behind one gate."""


class Pace(msgspec.Struct, frozen=True):
    """How a group is to be sampled: a sample lasts at least so many seconds and loops. Of a cell
    that reports its first copy, up to `laps` samples may follow each other behind one gate. Of a
    `sustained` total, so much of a sample is to pass while all copies run that its slowest copy
    carries out several loops meanwhile. A latency is that of one of the `steps` of a loop: of an
    access of a pointer chase."""

    seconds: float = 0.02
    loops: int = 2
    laps: int = 1
    sustained: bool = False
    steps: int = 1


class Group(Protocol):
    """Copies that run at the same time, or another operation. Nothing but that lies between open
    and wait.

    `most_loops` is how many loops may wait behind the gate, `pace` how it is to be sampled. Calls
    out of order raise, they never hang; `close` is safe at any moment, also while armed.
    """

    @property
    def most_loops(self) -> int: ...
    @property
    def pace(self) -> Pace: ...
    def arm(self, loops: int, laps: int = 1) -> None:
        """Of each copy, so many laps (`MOST_LAPS` at most) of so many loops, one right after the
        other."""
        ...

    def open(self) -> None: ...
    def wait(self) -> Timing: ...
    def close(self) -> None: ...


class Gated:
    """What groups have in common whose gate is of no driver: calls out of order raise."""

    most_loops = 1 << 30
    _armed: tuple[int, int] | None = None
    """Loops and laps."""
    _opened = False

    def arm(self, loops: int, laps: int = 1) -> None:
        if self._armed or min(loops, laps) < 1:
            raise BackendError("arm", "armed already" if self._armed else "no loops to run")
        self._armed = loops, laps

    def open(self) -> None:
        if not self._armed or self._opened:
            raise BackendError("open", "open already" if self._opened else "not armed")
        self._opened = True

    def pass_gate(self) -> tuple[int, int]:
        """Loops and laps of a group that was opened, which can be armed again."""
        if not self._armed or not self._opened:
            raise BackendError("wait", "the gate is not open")
        armed = self._armed
        self.close()
        return armed

    def close(self) -> None:
        self._armed, self._opened = None, False


_LACKING: Mapping[Operation, str] = {
    "chase": "does not measure latency",
    "enqueue": "does not tell what enqueueing takes",
    "ping-pong": "bounces no cache lines",
}


def lacking(name: str, operation: Operation) -> Unsupported:
    """What a backend of this name raises for an operation that it does not have."""
    return Unsupported(f"backend {name} {_LACKING.get(operation, f'has no {operation}')}")


def exchange_refusal(transfer: Transfer, cpus: Container[int | None]) -> str | None:
    """Why a cache line cannot bounce between CPUs as this transfer says, where these may be used;
    None if it can."""
    for memory in transfer.memories:
        if memory.index not in cpus:
            return f"{memory} is not there, or this process may not use it (cpuset, affinity)"
    first, second = transfer.source, transfer.destination
    if first == second:
        return f"a cache line bounces between two CPUs: {first} is one"
    if transfer != Transfer(first, second, Engine(first, "cpu")):
        return f"a cache line bounces by one thread on each CPU: write {first} -> {second}"
    return None


def check_exchanges(copies: Sequence[Copy], operation: Operation) -> None:
    """Raises Unsupported for what is not a ping-pong between the caches of CPUs, and for one that
    is between other memories."""
    for copy in copies:
        if copy.transfer.source.is_cpu != (operation == "ping-pong"):
            problem = "a line bounces between the caches of CPUs (core_to_core_latency)"
            raise Unsupported(f"{copy.transfer}: {problem}, and nothing else goes there")


class Tried(msgspec.Struct, frozen=True):
    """Settings tried on a path of a device, in words, and their rate in bytes/s; or the `problem`
    for which they were dropped."""

    path: str
    settings: str
    rate: float
    problem: str | None = None


@runtime_checkable
class Tuner(Protocol):
    """A backend that can search how its devices copy fastest, and remember it."""

    def tune(self, device: int, peer: int | None, tell: Callable[[Tried], None]) -> None:
        """Searches every path of `device`; `peer` is the device that peer paths go to."""
        ...


@runtime_checkable
class Virtual(Protocol):
    """A backend whose time is not the wall's: a simulated machine."""

    def clock(self) -> float:
        """Seconds of its own time."""
        ...

    def enter(
        self, cells: Mapping[int, Sequence[Transfer]], phase: Phase, visit: int = 0, taken: int = 0
    ) -> None:
        """A phase begins of the cells that are measured at the same time: by their numbers, from 0
        over the whole plan, with the visit's number and the samples taken of them before it, so
        that what is scheduled for one strikes it whichever process measures it. Raises what strikes
        a cell as the phase's calls would."""
        ...


@runtime_checkable
class HasTelemetry(Protocol):
    """A backend whose devices' own library tells of their state. What it does not tell is null;
    neither call raises for that."""

    def inventory(self) -> tuple[Accelerator, ...]:
        """Everything that the library tells of each device, in the order of their indices."""
        ...

    def sense(self, devices: Sequence[Memory]) -> tuple[Telemetry, ...]:
        """These devices at this moment. Called while they are measured, from
        another thread: it must neither wait for them nor use them."""
        ...


class Backend(Protocol):
    """What every backend offers. `name` is the space of its memories (`opencl`)."""

    name: str

    def devices(self) -> tuple[Device, ...]:
        """Its accelerators, in the order of their indices. The host backend has none."""
        ...

    def refusal(self, transfer: Transfer) -> str | Unsupported | None:
        """Why it cannot carry out this transfer here, or None: an exception where its kind says
        more than that it is unsupported. Never raises; the first answer for a kernel may take as
        long as compiling it."""
        ...

    def remarks(self, transfer: Transfer) -> tuple[str, ...]:
        """What a reader of the figure must know (two devices that share one DRAM), also of how the
        group prepared last carried it out; asked only of a transfer that is not refused."""
        ...

    def reach(self, memory: Memory, engine: Engine) -> object:
        """Who can use a buffer of `memory` allocated for `engine`: engines with an equal answer
        share it. Hashable."""
        ...

    def allocate(self, memory: Memory, size: int, engine: Engine) -> Buffer:
        """Memory of `size` bytes that `engine` can reach, bound, first-touched and pinned where
        the memory's kind says so. It serves the engines that `reach` tells."""
        ...

    def fill(self, buffer: Buffer, size: int, pattern: Pattern, seed: int, inverted: bool) -> None:
        """Writes the pattern, or its complement, over the first `size` bytes."""
        ...

    def first_mismatch(self, buffer: Buffer, size: int, pattern: Pattern, seed: int) -> int | None:
        """Offset of the first byte that differs from the pattern, None if all agree."""
        ...

    def checksum(self, buffer: Buffer, size: int) -> int:
        """Xor of all 64-bit words of the buffer (the tail zero-extended)."""
        ...

    def prepare(self, copies: Sequence[Copy], operation: Operation = "copy") -> Group:
        """A group ready to be armed any number of times. Only of copies there may be several.
        `chase`: one thread of the engine follows pointers through all of the source buffer.
        `enqueue`: the seconds are the host's, of the calls that enqueue all loops while the device
        is held. `ping-pong`: a cache line bounces between two CPUs, there and back in a loop.
        Raises Unsupported for an operation that it does not have, or not of this copy."""
        ...

    def close(self) -> None:
        """Frees everything; idempotent."""
        ...


_P = TypeVar("_P")
_FOLLOWS: dict[tuple[type, type], bool] = {}


def follows(one: object, protocol: type[_P]) -> TypeGuard[_P]:
    """Whether its type follows one of the protocols above. `isinstance` asks that anew each time,
    which takes longer than to measure with a simulated device."""
    asked = type(one), protocol
    if asked not in _FOLLOWS:
        _FOLLOWS[asked] = isinstance(one, protocol)
    return _FOLLOWS[asked]

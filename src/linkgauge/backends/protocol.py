"""The protocol of a backend: devices, buffers, groups of transfers behind a gate.

For each cell, the engine calls a backend in this order:

    refusal(transfer)              a reason, before anything is allocated
    allocate(memory, size, …)      buffers, which later cells reuse
    fill(buffer, …)                a pattern in the source, its complement in the destination
    prepare(copies, operation)     a Group; then, for each sample,
        arm(loops, laps)               everything is enqueued, behind a closed gate
        open()                         the gate: all transfers start together
        wait()                         the Timing
    first_mismatch(buffer, …)      every byte compared
    close()

Allocating, gating and verifying are separate calls: the ranks of a cell meet between them. Raises
BackendError for native errors, Unsupported for what the machine cannot do, and AllocationError.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from enum import IntEnum
from typing import Protocol, TypeGuard, TypeVar, runtime_checkable

import msgspec

from linkgauge.model.counters import Counters
from linkgauge.model.documents.result import Placement
from linkgauge.model.errors import BackendError, Phase, Unsupported
from linkgauge.model.hardware.inventory import Accelerator, Telemetry
from linkgauge.model.hardware.machine import Device
from linkgauge.model.memory import Memory
from linkgauge.model.notes import Note
from linkgauge.model.operations.operation import OperationName
from linkgauge.model.operations.workload import WorkDone, Workload
from linkgauge.model.settings import Tried
from linkgauge.model.transfer import Engine, Transfer


class Pattern(IntEnum):
    """The contents of a buffer. Word i (64-bit, little-endian) of seed s is x = (i + s ·
    0xD1B54A32D192ED03) · 0x9E3779B97F4A7C15, then x ^= x >> 29, modulo 2^64."""

    WORDS = 0
    """Word i at word i."""
    CONSTANT = 1
    """Word 0 everywhere: what a pure write stores."""
    SPLIT = 2
    """Odd chunks hold WORDS and even ones its complement: both buffers after a `<->`."""
    NUMBERS = 3
    """64-bit floating-point numbers, 1 + (x >> 16) / 2^48: their sums and triples are exact."""
    SCALED = 4
    """Three times each number of an array b."""
    ADDED = 5
    """b + c, where c is the array that follows b in one buffer, with as many numbers."""
    TRIAD = 6
    """b + 3 c."""

    @property
    def is_of_numbers(self) -> bool:
        """Whether only backends with operations on arrays have this pattern."""
        return self >= Pattern.NUMBERS


RESULTS: Mapping[str, Pattern] = {
    "scale": Pattern.SCALED,
    "add": Pattern.ADDED,
    "triad": Pattern.TRIAD,
}
"""What operations that compute on arrays leave in their destination, by kind."""


def seed_of(word: int) -> int:
    """The seed whose word 0 is `word`: the inverse of Pattern's formula."""
    x = word
    for _ in range(2):  # each round corrects 29 more bits; the highest 29 already are
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
    """A buffer with a fixed address in this process, so that engines of other backends may use
    it."""

    @property
    def address(self) -> int: ...


class Copy(msgspec.Struct, frozen=True):
    """A transfer with its buffers: `size` bytes of each, filled from `seed`. A `null` end has no
    buffer; the source of an operation on two arrays has twice the size. An `interference` copy only
    has to run longer than the first copy of its group. An `endless` copy, by host threads or as the
    load of a latency, runs until the other copies of its group have ended or, if there are none,
    until wait(); its seconds are what all loops would have taken. A `tracked` copy also reports
    progress within a launch that carries out all loops.

    `warm_ups` are loops behind the gate before the clock starts. None leaves their number to the
    backend, and they end before any copy of the group starts. A number given follows nvbandwidth:
    the copy does not wait for the warm-ups of others. Backends other than cuda ignore it."""

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
    """The seconds that all loops of each copy took; `span` is from the first start to the last end.
    `checksums` has the xor of the 64-bit words that a pure read saw in its last loop, None for
    other copies. `progress` has each copy's start and the end of each of its laps, in seconds since
    the gate opened; only its start and end if the copy cannot distinguish laps. `counters` covers
    all threads, if the backend counts events."""

    seconds: tuple[float, ...]
    span: float
    checksums: tuple[int | None, ...] = ()
    progress: tuple[tuple[float, ...], ...] = ()
    counters: Counters | None = None


MOST_LAPS = 64
"""Most laps behind one gate."""


class Pace(msgspec.Struct, frozen=True):
    """How to sample a group. A sample lasts at least `seconds` and has at least `loops` loops. In a
    cell that reports its first copy, up to `laps` samples may follow each other behind one gate.
    For a `sustained` total, all copies must run together for several loops of the slowest one in
    each sample. A loop has `steps`, such as the accesses of a pointer chase: a latency is the time
    of one step, and a rate is in steps per second. `most` limits the samples of a visit: a single
    sample makes a visit costly, and beyond 32 the visit's median gets more exact, but not the
    variation between visits; only percentiles need more. If samples are `rehearsed`, one that does
    not count precedes samples shorter than `seconds`, because the first one after a pause takes
    longer on devices and on the CPU that calls them, and the first of all much longer."""

    seconds: float = 0.02
    loops: int = 2
    laps: int = 1
    most: int = 32
    sustained: bool = False
    steps: int = 1
    rehearsed: bool = False


class Group(Protocol):
    """Copies that run at the same time, or another operation. Nothing else runs between open and
    wait.

    `most_loops` is how many loops may wait behind the gate, `pace` how to sample the group. Calls
    out of order raise and never hang; `close` is safe at any moment, also while armed.
    """

    pace: Pace

    @property
    def most_loops(self) -> int: ...
    def arm(self, loops: int, laps: int = 1) -> None:
        """Arms `laps` laps (at most `MOST_LAPS`) of `loops` loops of each copy, back to back."""
        ...

    def open(self) -> None: ...
    def wait(self) -> Timing: ...
    def close(self) -> None: ...


@runtime_checkable
class CheckedGroup(Protocol):
    """A group whose operation computes results that are in none of the copies' buffers."""

    def mismatch(self) -> str | None:
        """Describes an error in the result of the last loop; None if it is right."""
        ...


class Wrong(msgspec.Struct, frozen=True):
    """The wrong elements in the result of a collective: there are `count`, of which the first is at
    index `first` of the receive buffer of `rank`. All are 0 if none is wrong."""

    count: int = 0
    rank: int = 0
    first: int = 0


@runtime_checkable
class CollectingGroup(Protocol):
    """A group that carries out a collective. Both calls come between samples."""

    def iterations(self, count: int) -> tuple[tuple[float, ...], ...]:
        """The seconds of each of `count` single iterations, by rank: the time of the rank's own
        part. The rank that comes last waits least."""
        ...

    def check(self) -> Wrong:
        """Fills the buffers, carries the collective out once, and checks the result of every
        rank."""
        ...


@runtime_checkable
class Working(Protocol):
    """A group that carries out an AI workload. The call comes after all samples."""

    def done(self) -> WorkDone: ...


@runtime_checkable
class Works(Protocol):
    """A backend that carries out AI workloads."""

    def carry_out(self, transfer: Transfer, workload: Workload) -> Group:
        """The group of a workload on the owner of the transfer's engine. Raises Unsupported if the
        workload does not fit there."""
        ...


def run(group: Group, loops: int = 2, laps: int = 1) -> Timing:
    """Runs `laps` laps of `loops` loops behind the group's gate, and returns their timing."""
    group.arm(loops, laps)
    group.open()
    return group.wait()


class Gated:
    """Base of groups with a software gate: calls out of order raise."""

    most_loops = 1 << 30
    _armed: tuple[int, int] | None = None
    """The numbers of loops and laps for which the group is armed."""
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
        """The loops and laps of an opened group, which can then be armed again."""
        if not self._armed or not self._opened:
            raise BackendError("wait", "the gate is not open")
        armed, self._armed, self._opened = self._armed, None, False
        return armed

    def close(self) -> None:
        self._armed, self._opened = None, False


@runtime_checkable
class Tuner(Protocol):
    """A backend that can search for the fastest settings of its devices, and store them."""

    def tune(self, device: int, peer: int | None, report: Callable[[Tried], None]) -> None:
        """Searches every path of `device`; `peer` is the device that peer paths go to."""
        ...


@runtime_checkable
class Clocked(Protocol):
    """A backend with its own clock, by which a cell's time is counted."""

    def clock(self) -> float:
        """The backend's time in seconds."""
        ...


@runtime_checkable
class SimulatedClock(Clocked, Protocol):
    """A simulated machine, whose time is simulated, too."""

    def enter(
        self, cells: Mapping[int, Sequence[Transfer]], phase: Phase, visit: int = 0, taken: int = 0
    ) -> None:
        """Starts a phase of the cells that are measured at the same time; `cells` has their
        transfers by the cell's number in the whole plan, from 0. `visit` is the number of this
        visit and `taken` the samples before it, so that a scheduled fault hits its cell whichever
        process measures it. Raises the faults that the phase's calls would."""
        ...


@runtime_checkable
class HasTelemetry(Protocol):
    """A backend whose vendor library reports the state of its devices. Facts that the library does
    not report are null; neither method raises for them."""

    def inventory(self) -> tuple[Accelerator, ...]:
        """All facts that the library reports on each device, by device index."""
        ...

    def sense(self, devices: Sequence[Memory]) -> tuple[Telemetry, ...]:
        """The current state of these devices. It is called from another thread while they are
        measured, so it must neither wait for them nor use them."""
        ...


class Backend(Protocol):
    """The interface of every backend. `name` is the prefix of its memories (`opencl`)."""

    name: str

    def devices(self) -> tuple[Device, ...]:
        """The backend's accelerators, by device index. The host backend has none."""
        ...

    def refusal(self, transfer: Transfer) -> str | Unsupported | None:
        """Why the backend cannot carry out this transfer here, or None; an exception if its type
        says more than "unsupported". Never raises. The first answer for a kernel may take as long
        as compiling it."""
        ...

    def remarks(self, transfer: Transfer) -> tuple[str | Note, ...]:
        """Remarks for readers of the figure (two devices share one DRAM), also on how the group
        that was prepared last is carried out. Called only for transfers that are not refused."""
        ...

    def reach(self, memory: Memory, engine: Engine) -> object:
        """A hashable key: engines with equal keys can share a buffer of `memory` that was allocated
        for `engine`."""
        ...

    def allocate(self, memory: Memory, size: int, engine: Engine) -> Buffer:
        """Memory of `size` bytes that `engine` can reach: bound, first-touched and pinned as the
        memory's kind requires. It serves all engines of equal `reach`."""
        ...

    def fill(self, buffer: Buffer, size: int, pattern: Pattern, seed: int, inverted: bool) -> None:
        """Writes the pattern, or its complement, over the first `size` bytes."""
        ...

    def first_mismatch(self, buffer: Buffer, size: int, pattern: Pattern, seed: int) -> int | None:
        """The offset of the first byte that differs from the pattern; None if all agree."""
        ...

    def checksum(self, buffer: Buffer, size: int) -> int:
        """Xor of all 64-bit words of the buffer (the tail zero-extended)."""
        ...

    def prepare(self, copies: Sequence[Copy], operation: OperationName = "copy") -> Group:
        """A group that can be armed any number of times. Copies, operations on arrays and `primes`
        can be several. `chase`: one thread of the engine follows pointers through all of the source
        buffer; what runs beside it, if the backend allows that, is endless. `stream-…` and
        `peak-…`: host threads do what STREAM does with arrays. `enqueue`: seconds
        are the host time of the calls that enqueue all loops while the device is held. `ping-pong`:
        a cache line bounces between two CPUs, one round trip a loop. `copy-ping-pong`: a copy there
        and one back, each waited for by the host, a round trip a loop. `flag-ping-pong`: a store by
        the source's side that the destination's polls for, and one back. `timed-copy`: a copy, by
        the device's clock. `launch` and others of HAND_OVERS: what the host calls, until it knows
        the end. Copies after the first of these load the link. `overlap`: the first is a kernel
        that computes, the others are copies of its device; seconds are those without the other, the
        span is that of all at once. A Collective: each copy is a rank's part of it, with its send
        buffer and its receive buffer; in place, it has the latter alone. Its seconds are the
        host's, until all is done. `touch`: the destination's pages are given back and faulted in
        anew. `primes`: threads search prime numbers, an event a loop. Raises Unsupported for an
        operation that it lacks, in general or for this copy."""
        ...

    def close(self) -> None:
        """Frees everything; idempotent."""
        ...


_P = TypeVar("_P")
_FOLLOWS: dict[tuple[type, type], bool] = {}


def follows(one: object, protocol: type[_P]) -> TypeGuard[_P]:
    """Whether a value's type implements one of the protocols above. `isinstance` would check that
    again on each call, which takes longer than a measurement on a simulated device."""
    asked = type(one), protocol
    if asked not in _FOLLOWS:
        _FOLLOWS[asked] = isinstance(one, protocol)
    return _FOLLOWS[asked]

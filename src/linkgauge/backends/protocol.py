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

Allocating, gating and verifying are separate calls, because the ranks of a cell meet in between. A
backend raises BackendError for native errors, AllocationError if memory is short, and Unsupported
if the machine cannot carry out a call."""

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
    """Word i of the formula at place i."""
    CONSTANT = 1
    """Word 0 at all places, as a pure write stores."""
    SPLIT = 2
    """Odd chunks hold WORDS, even chunks the complement, as in both buffers after a `<->`."""
    NUMBERS = 3
    """64-bit floating-point numbers, 1 + (x >> 16) / 2^48; sums and triples of these are exact."""
    SCALED = 4
    """Three times each number of an array b."""
    ADDED = 5
    """b + c, where c is the array that follows b in one buffer, with as many numbers."""
    TRIAD = 6
    """b + 3 c."""

    @property
    def is_of_numbers(self) -> bool:
        """Whether the pattern consists of floating-point numbers, for operations on arrays."""
        return self >= Pattern.NUMBERS


RESULTS: Mapping[str, Pattern] = {
    "scale": Pattern.SCALED,
    "add": Pattern.ADDED,
    "triad": Pattern.TRIAD,
}
"""The patterns that operations on arrays leave in their destination, by kind."""


def seed_of(word: int) -> int:
    """Returns the seed whose word 0 is `word`: the inverse of Pattern's formula."""
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
    """A buffer at a fixed address in this process. Engines of other backends may use it, too."""

    @property
    def address(self) -> int: ...


class Copy(msgspec.Struct, frozen=True):
    """A transfer with its buffers: `size` bytes of each, filled from `seed`. A `null` end has no
    buffer. The source of an operation on two arrays has twice the size. An `interference` copy only
    has to run longer than the first copy of its group. An `endless` copy (by host threads, or as
    the load of a latency) runs until the other copies have ended, or until wait() if there are no
    others. The seconds of an endless copy are the time that all loops would take. A `tracked` copy
    also reports progress within a launch that carries out all loops.

    `warm_ups` is the number of loops before the clock starts. With None, the backend chooses, and
    all warm-ups end before any copy of the group starts. With a number, as in nvbandwidth, the copy
    does not wait for the warm-ups of other copies. Only backend cuda uses a given number."""

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
    """The seconds that all loops of each copy took. `span` runs from the first start to the last
    end. `checksums` has the xor of the 64-bit words that a pure read saw in the last loop, None for
    other copies. `progress` has the start of each copy and the end of each lap, in seconds since
    the gate opened; without distinct laps, only start and end. `counters` covers all threads, if
    the backend counts events."""

    seconds: tuple[float, ...]
    span: float
    checksums: tuple[int | None, ...] = ()
    progress: tuple[tuple[float, ...], ...] = ()
    counters: Counters | None = None


MOST_LAPS = 64
"""Most laps behind one gate."""


class Pace(msgspec.Struct, frozen=True):
    """How to sample a group. A sample lasts at least `seconds` and has at least `loops` loops. If a
    cell reports its first copy, up to `laps` samples may follow each other behind one gate. For a
    `sustained` total, all copies run together for several loops of the slowest copy in each sample.
    A loop has `steps`, such as the accesses of a pointer chase: a latency is the time of one step,
    a rate is in steps per second. A visit takes at most `most` samples. Beyond 32, more samples
    improve percentiles, but not the variation between visits. If `rehearsed`, an uncounted sample
    precedes samples shorter than `seconds`, because the first sample after a pause takes longer."""

    seconds: float = 0.02
    loops: int = 2
    laps: int = 1
    most: int = 32
    sustained: bool = False
    steps: int = 1
    rehearsed: bool = False


class Group(Protocol):
    """Copies that run at the same time, or another operation. Nothing else runs between open() and
    wait().

    `most_loops` is the number of loops that may wait behind the gate. `pace` says how to sample the
    group. Calls out of order raise an error and never hang. `close` is safe at any time, also while
    the group is armed."""

    pace: Pace

    @property
    def most_loops(self) -> int: ...
    def arm(self, loops: int, laps: int = 1) -> None:
        """Enqueues `laps` laps (at most `MOST_LAPS`) behind the gate. Each lap has `loops` loops of
        each copy, back to back."""
        ...

    def open(self) -> None: ...
    def wait(self) -> Timing: ...
    def close(self) -> None: ...


@runtime_checkable
class CheckedGroup(Protocol):
    """A group whose operation computes results that are not in the copies' buffers."""

    def mismatch(self) -> str | None:
        """Describes an error in the result of the last loop, or returns None if the result is
        right."""
        ...


class Wrong(msgspec.Struct, frozen=True):
    """The wrong elements in the result of a collective. There are `count` wrong elements. The first
    is at index `first` of the receive buffer of `rank`. All fields are 0 if no element is wrong."""

    count: int = 0
    rank: int = 0
    first: int = 0


@runtime_checkable
class CollectingGroup(Protocol):
    """A group that carries out a collective. Both methods are called between samples."""

    def iterations(self, count: int) -> tuple[tuple[float, ...], ...]:
        """Returns the seconds of each of `count` single iterations, by rank. The seconds are the
        time of the rank's own part; the rank that comes last waits least."""
        ...

    def check(self) -> Wrong:
        """Fills the buffers, carries out the collective once, and checks the result of every
        rank."""
        ...


@runtime_checkable
class Working(Protocol):
    """A group that carries out an AI workload. The workload's result is read after all samples."""

    def done(self) -> WorkDone: ...


@runtime_checkable
class Works(Protocol):
    """A backend that carries out AI workloads."""

    def carry_out(self, transfer: Transfer, workload: Workload) -> Group:
        """Returns the group of a workload on the owner of the transfer's engine. Raises Unsupported
        if the workload does not fit on this device."""
        ...


def run(group: Group, loops: int = 2, laps: int = 1) -> Timing:
    """Runs `laps` laps of `loops` loops behind the group's gate, and returns the timing."""
    group.arm(loops, laps)
    group.open()
    return group.wait()


class Gated:
    """Base of groups with a software gate. Calls out of order raise an error."""

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
        """Returns the loops and laps of an opened group, and allows the group to be armed again."""
        if not self._armed or not self._opened:
            raise BackendError("wait", "the gate is not open")
        armed, self._armed, self._opened = self._armed, None, False
        return armed

    def close(self) -> None:
        self._armed, self._opened = None, False


@runtime_checkable
class Tuner(Protocol):
    """A backend that can search for the fastest settings of its devices and store them."""

    def tune(self, device: int, peer: int | None, report: Callable[[Tried], None]) -> None:
        """Searches every path of `device`. Peer paths lead to the device `peer`."""
        ...


@runtime_checkable
class Clocked(Protocol):
    """A backend with its own clock, which measures the time of a cell."""

    def clock(self) -> float:
        """Returns the backend's time in seconds."""
        ...


@runtime_checkable
class SimulatedClock(Clocked, Protocol):
    """A simulated machine, whose time is simulated, too."""

    def enter(
        self, cells: Mapping[int, Sequence[Transfer]], phase: Phase, visit: int = 0, taken: int = 0
    ) -> None:
        """Starts a phase of cells that are measured at the same time. `cells` has the transfers of
        each cell, by the cell's number in the whole plan, from 0. `visit` is the number of this
        visit, and `taken` the number of earlier samples. So a scheduled fault affects its cell in
        whichever process measures the cell. Raises the faults that the phase's calls would
        raise."""
        ...


@runtime_checkable
class HasTelemetry(Protocol):
    """A backend whose vendor library reports the state of the devices. Facts that the library does
    not report are null; the methods raise no errors for missing facts."""

    def inventory(self) -> tuple[Accelerator, ...]:
        """Returns all facts that the library reports about each device, by device index."""
        ...

    def sense(self, devices: Sequence[Memory]) -> tuple[Telemetry, ...]:
        """Returns the current state of these devices. Another thread calls this method while the
        devices are measured, so the method must neither wait for the devices nor use them."""
        ...


class Backend(Protocol):
    """The interface of every backend. `name` is the prefix of the backend's memories (`opencl`)."""

    name: str

    def devices(self) -> tuple[Device, ...]:
        """Returns the backend's accelerators, by device index. The host backend has none."""
        ...

    def refusal(self, transfer: Transfer) -> str | Unsupported | None:
        """Returns why the backend cannot carry out this transfer here, or None if it can. The
        answer is an exception if the exception's type says more than "unsupported". Never raises an
        error. The first answer for a kernel may take as long as compiling the kernel."""
        ...

    def remarks(self, transfer: Transfer) -> tuple[str | Note, ...]:
        """Returns remarks for readers of the figure (two devices share one DRAM), and remarks on
        how the last prepared group is carried out. Called only for transfers that are not
        refused."""
        ...

    def reach(self, memory: Memory, engine: Engine) -> object:
        """Returns a hashable key. Engines with equal keys can share a buffer of `memory`."""
        ...

    def allocate(self, memory: Memory, size: int, engine: Engine) -> Buffer:
        """Allocates `size` bytes that `engine` can reach: bound, first-touched and pinned as the
        memory's kind requires. The buffer serves all engines with an equal `reach`."""
        ...

    def fill(self, buffer: Buffer, size: int, pattern: Pattern, seed: int, inverted: bool) -> None:
        """Writes the pattern, or its complement, over the first `size` bytes."""
        ...

    def first_mismatch(self, buffer: Buffer, size: int, pattern: Pattern, seed: int) -> int | None:
        """Returns the offset of the first byte that differs from the pattern, or None if all bytes
        agree."""
        ...

    def checksum(self, buffer: Buffer, size: int) -> int:
        """Returns the xor of all 64-bit words of the buffer. The last word is filled up with zero
        bytes."""
        ...

    def prepare(self, copies: Sequence[Copy], operation: OperationName = "copy") -> Group:
        """Returns a group that can be armed any number of times. Raises Unsupported if the backend
        lacks the operation, in general or for these copies. The operations:

        - copies, operations on arrays (`stream-…`, `peak-…`) and `primes` (a loop is one event);
        - `chase`: a thread follows pointers through the source; other copies must be endless;
        - `enqueue`: the seconds are the host's, for enqueuing all loops while a gate holds the
          device back;
        - `ping-pong`: a cache line bounces between two CPUs; a loop is a round trip;
        - `copy-ping-pong`: copies there and back; the host waits for each; a loop is a round trip;
        - `flag-ping-pong`: the destination's side polls for a stored value and stores one back;
        - `timed-copy`: a copy, timed by the device;
        - `launch` and others of HAND_OVERS: from the host's call until the host knows the end;
          in these latencies, copies after the first load the link;
        - `overlap`: a kernel (the first copy) and copies of its device; the seconds are of each
          part alone, the span is of all at once;
        - a Collective: each copy is a rank's part, with send and receive buffer (in place: only
          the receive buffer); the seconds are the host's, until everything is done;
        - `touch`: the destination's pages are returned to the kernel and touched again."""
        ...

    def close(self) -> None:
        """Frees everything; idempotent."""
        ...


_P = TypeVar("_P")
_FOLLOWS: dict[tuple[type, type], bool] = {}


def follows(one: object, protocol: type[_P]) -> TypeGuard[_P]:
    """Whether the type of a value implements a protocol. The answer is stored for each type,
    because `isinstance` would check on every call, which takes longer than a measurement on a
    simulated device."""
    asked = type(one), protocol
    if asked not in _FOLLOWS:
        _FOLLOWS[asked] = isinstance(one, protocol)
    return _FOLLOWS[asked]

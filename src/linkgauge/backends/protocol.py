"""The interface of backends: devices, buffers, and groups of transfers that start together.

For each measured cell, a backend is called in this order:

    refusal(transfer)              a reason, before anything is allocated
    allocate(memory, size, …)      buffers, which later cells reuse
    fill(buffer, …)                a pattern in the source, its complement in the destination
    prepare(copies, operation)     a Group; then, for each sample,
        arm(loops, batches)               all work is enqueued behind a gate (start signal)
        open()                         the gate opens, and all transfers start
        wait()                         returns the Timing
    first_mismatch(buffer, …)      every byte is compared
    close()

If a cell has several ranks, they wait for each other between these calls. A backend raises
AllocationError if memory is short, Unsupported if the machine cannot do something, and BackendError
for other failures."""

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
from linkgauge.model.operations.operation import Operation, OperationName
from linkgauge.model.operations.workload import WorkDone, Workload
from linkgauge.model.settings import Tried
from linkgauge.model.transfer import Engine, Transfer


class Pattern(IntEnum):
    """The contents of a buffer. Word i (64-bit, little-endian) of seed s is x = (i + s ·
    0xD1B54A32D192ED03) · 0x9E3779B97F4A7C15, then x ^= x >> 29, modulo 2^64."""

    WORDS = 0
    """Each word as the formula says."""
    CONSTANT = 1
    """Word 0 everywhere, as after a pure write."""
    SPLIT = 2
    """Odd chunks are WORDS, even chunks are inverted: both buffers after a `<->` are like this."""
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
        return self >= Pattern.NUMBERS


SEED_FACTOR, INDEX_FACTOR = 0xD1B54A32D192ED03, 0x9E3779B97F4A7C15
RESULTS: Mapping[str, Pattern] = {
    "scale": Pattern.SCALED,
    "add": Pattern.ADDED,
    "triad": Pattern.TRIAD,
}
"""The patterns in the destination after operations on arrays, by operation."""


def seed_of(word: int) -> int:
    """Returns the seed of the pattern whose first word is `word`."""
    x = word
    for _ in range(2):  # each round corrects 29 more bits; the highest 29 already are
        x = word ^ x >> 29
    return x * pow(SEED_FACTOR * INDEX_FACTOR, -1, 1 << 64) % (1 << 64)


def first_word(seed: int) -> int:
    x = seed * SEED_FACTOR * INDEX_FACTOR % (1 << 64)
    return x ^ x >> 29


class Buffer(Protocol):
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
    """A buffer with an address in this process, so that other backends can use it, too."""

    @property
    def address(self) -> int: ...


class Copy(msgspec.Struct, frozen=True):
    """A transfer of `size` bytes with its buffers. A `null` end has no buffer; two arrays to read
    share a buffer. If `interference` is true, the copy only has to outlast the first copy of the
    group. If `endless` is true, the copy runs until the others have ended or, if it is alone, until
    wait(); its time is scaled to all loops. If `tracked` is true, progress is recorded even if one
    launch does all loops. `warm_ups` (`cuda`) is the number of loops before the clock starts. If
    None, the backend chooses the number, and the copies start their clocks together."""

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
    """Times of a group in seconds. `seconds` is each copy's time for all loops. `span` is the time
    from the first start to the last end. `checksums` is the xor of the 64-bit words of the last
    loop for each copy without destination, None for other copies. `progress` is each copy's start
    and ends of batches since the start signal. `counters` is all threads' CPU events."""

    seconds: tuple[float, ...]
    span: float
    checksums: tuple[int | None, ...] = ()
    progress: tuple[tuple[float, ...], ...] = ()
    counters: Counters | None = None

    @classmethod
    def of_one(cls, times: Sequence[float], counters: Counters | None = None) -> Timing:
        """Returns the timing of one copy. `times` has its start and the ends of its batches."""
        progress = tuple(at - times[0] for at in times)
        return cls((progress[-1],), progress[-1], (None,), (progress,), counters)


MOST_BATCHES = 64
"""The largest number of batches behind one gate."""
_MOST = 512
"""The largest number of iterations in a round of samples. All rounds together have enough for the
99.9th percentile."""


class SamplingPolicy(msgspec.Struct, frozen=True):
    """How a group is sampled. A sample takes at least `seconds`, and has at least `loops` loops. At
    most `batches` samples follow one start signal. A repetition has at most `most` samples. A loop
    of a latency has `steps` steps (accesses), and the figure is the time of one step. If
    `sustained` is true, all copies run for several loops of the slowest copy. If `rehearsed` is
    true, an uncounted sample precedes short samples, because the first is slower. If `steady` is
    true, samples hardly differ: few suffice, and only a cell's first repetition warms up and fills
    sources. If `level` is not 0, sampling goes on until the last `level` samples show the same
    speed, because a power cap acts late."""

    seconds: float = 0.02
    loops: int = 2
    batches: int = 1
    most: int = 32
    sustained: bool = False
    steps: int = 1
    rehearsed: bool = False
    steady: bool = False
    level: int = 0


def single_iterations(steps: int) -> SamplingPolicy:
    """Returns a policy in which a sample is one iteration. Its time ÷ `steps` is a latency."""
    return SamplingPolicy(seconds=0.0, loops=1, batches=MOST_BATCHES, most=_MOST, steps=steps)


class Group(Protocol):
    """Copies that run at the same time, or another operation. No other work runs between `open` and
    `wait`. Up to `most_loops` loops can wait behind the gate. Calls in a wrong order raise an
    error, but `close` may always be called."""

    policy: SamplingPolicy

    @property
    def most_loops(self) -> int: ...
    def arm(self, loops: int, batches: int = 1) -> None:
        """Enqueues `batches` (at most `MOST_BATCHES`) batches of `loops` loops behind the gate."""

    def open(self) -> None: ...
    def wait(self) -> Timing: ...
    def close(self) -> None: ...


@runtime_checkable
class CheckedGroup(Protocol):
    """A group whose results are not in the copies' buffers, and are checked by `mismatch`."""

    def mismatch(self) -> str | None:
        """Returns a message if the result of the last loop is wrong, else None."""


class Wrong(msgspec.Struct, frozen=True):
    """Wrong elements: their count, and the index of the first in the buffer of `rank`."""

    count: int = 0
    rank: int = 0
    first: int = 0


@runtime_checkable
class CollectingGroup(Protocol):
    """A group that carries out a collective. Its methods are called between samples."""

    def iterations(self, count: int) -> tuple[tuple[float, ...], ...]:
        """Carries out iterations. Returns the seconds of each iteration, in a tuple per rank."""

    def check(self) -> Wrong:
        """Carries out the collective once with new data, and checks each rank's result."""


@runtime_checkable
class Working(Protocol):
    def done(self) -> WorkDone: ...


@runtime_checkable
class Works(Protocol):
    def carry_out(self, transfer: Transfer, workload: Workload) -> Group:
        """Prepares a workload. Raises Unsupported if the engine's device cannot carry it out."""


def run(group: Group, loops: int = 2, batches: int = 1) -> Timing:
    group.arm(loops, batches)
    group.open()
    return group.wait()


class Gated:
    """A group's state: armed, opened or closed. Calls in a wrong order raise BackendError."""

    most_loops = 1 << 30
    _armed: tuple[int, int] | None = None
    """The numbers of loops and batches that are waiting."""
    _opened = _closed = False

    def arm(self, loops: int, batches: int = 1) -> None:
        refusals = (
            (self._closed, "the group is closed"),
            (self._armed, "the group is armed already"),
            (min(loops, batches) < 1, "no loops to run"),
        )
        for is_wrong, why in refusals:
            if is_wrong:
                raise BackendError("arm", why)
        self._armed = loops, batches

    def open(self) -> None:
        if not self._armed or self._opened:
            raise BackendError("open", "open already" if self._opened else "not armed")
        self._opened = True

    def pass_gate(self) -> tuple[int, int]:
        """Disarms the group. Returns its loops and batches. Raises BackendError for a shut gate."""
        if not self._armed or not self._opened:
            raise BackendError("wait", "the gate is not open")
        armed, self._armed, self._opened = self._armed, None, False
        return armed

    def close(self) -> None:
        self._armed, self._opened, self._closed = None, False, True


@runtime_checkable
class Tuner(Protocol):
    def tune(self, device: int, peer: int | None, report: Callable[[Tried], None]) -> None:
        """Finds settings for the paths of `device` and, unless `peer` is None, paths to `peer`."""


@runtime_checkable
class Clocked(Protocol):
    def clock(self) -> float:
        """Returns the time of the backend's clock in seconds."""


@runtime_checkable
class SimulatedClock(Clocked, Protocol):
    def enter(
        self,
        cells: Mapping[int, Sequence[Transfer]],
        phase: Phase,
        repetition: int = 0,
        taken: int = 0,
    ) -> None:
        """Starts a phase of cells that are measured together. The keys of `cells` are numbers in
        the plan. `taken` counts earlier samples. Noise and faults depend on all arguments."""


@runtime_checkable
class HasTelemetry(Protocol):
    """Reads facts and states of devices. Unknown facts are null and raise no errors."""

    def inventory(self) -> tuple[Accelerator, ...]:
        """Returns all known facts about each device, in the order of the devices."""

    def sense(self, devices: Sequence[Memory]) -> tuple[Telemetry, ...]:
        """Reads the devices' sensors. Another thread calls it, so it must not use the devices."""


class Backend(Protocol):
    """A backend. `name` begins the names of its memories: `opencl` for `opencl:0`."""

    name: str

    def devices(self) -> tuple[Device, ...]:
        """Returns the backend's accelerators, by device index. The host backend has none."""

    def refusal(self, transfer: Transfer) -> str | Unsupported | None:
        """Returns why the backend cannot carry out the transfer (an exception if its type matters),
        or None if it can. Never raises. The first call may compile a kernel, which takes long."""

    def remarks(self, transfer: Transfer) -> tuple[str | Note, ...]:
        """Returns remarks on a transfer's figure, such as "both devices share one DRAM". Some
        remarks concern the group that was prepared last. `refusal` must have returned None."""

    def reach(self, memory: Memory, engine: Engine) -> object:
        """Returns a key. Engines with equal keys can use the same buffer in `memory`."""

    def allocate(self, memory: Memory, size: int, engine: Engine) -> Buffer:
        """Allocates a buffer of the memory's kind, for all engines with an equal `reach`."""

    def fill(self, buffer: Buffer, size: int, pattern: Pattern, seed: int, inverted: bool) -> None:
        """Writes a pattern into the first `size` bytes. `inverted` inverts all bits."""

    def first_mismatch(self, buffer: Buffer, size: int, pattern: Pattern, seed: int) -> int | None:
        """Returns the offset of the first wrong byte, or None if all bytes are right."""

    def checksum(self, buffer: Buffer, size: int) -> int:
        """Returns the xor of all 64-bit words. An incomplete last word is filled up with zeros."""

    def prepare(self, copies: Sequence[Copy], operation: OperationName = "copy") -> Group:
        """Returns a group for an operation, which can be armed again and again. Raises Unsupported
        if the backend cannot carry out the operation with these copies. Among the operations are:

        - copies, operations on arrays (`stream-…`, `peak-…`) and `primes` (a loop is one search);
        - `chase`: a thread follows pointers through the source; other copies must be endless;
        - `enqueue`: the host enqueues all loops; only the host's time counts;
        - `ping-pong`: a cache line bounces between two CPUs; a loop is a round trip;
        - `copy-ping-pong`: copies there and back; the host waits for each; a loop is a round trip;
        - `flag-ping-pong`: the destination's side polls for a stored value and stores one back;
        - `timed-copy`: a copy, timed by the device;
        - those in HAND_OVERS: timed from the host's call until the host knows the end; all copies
          but the first only load the link, also in `copy-ping-pong` and `flag-ping-pong`;
        - `overlap`: a kernel (the first copy) and copies of its device; `seconds` has the time of
          each part alone, `span` the time of all parts together;
        - a Collective: each copy is a rank's part, with send and receive buffer (in place: only
          the receive buffer), timed by the host until everything is done;
        - `touch`: the destination's pages go back to the system, then are touched again."""

    def close(self) -> None:
        """Frees all buffers and groups. May be called again."""


_P = TypeVar("_P")
_FOLLOWS: dict[tuple[type, type], bool] = {}


def follows(one: object, protocol: type[_P]) -> TypeGuard[_P]:
    """Does the same as `isinstance`, but faster, because it stores the result for each type."""
    asked = type(one), protocol
    if asked not in _FOLLOWS:
        _FOLLOWS[asked] = isinstance(one, protocol)
    return _FOLLOWS[asked]


@runtime_checkable
class Glance(Protocol):
    """Facts about a backend's devices, without opening it."""

    def devices(self) -> tuple[Device, ...]:
        """Returns the backend's accelerators, by device index."""

    def inventory(self) -> tuple[Accelerator, ...]:
        """Returns all known facts about each device, in the order of the devices."""


@runtime_checkable
class Readies(Protocol):
    def ready(self, does: Operation, transfers: int) -> None:
        """Prepares for an operation with this number of transfers. A second call is quick."""

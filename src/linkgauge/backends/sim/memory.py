"""How memory of a simulated machine is stored. Only the first bytes of a buffer (its window) are
real. For the other bytes, the last written pattern and the flipped bits are recorded, so that
copies and comparisons are exact."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache, reduce
from operator import xor
from typing import NamedTuple

from linkgauge.backends import native
from linkgauge.backends.protocol import Copy, Gated, Pattern, SamplingPolicy, Timing
from linkgauge.model.documents.result import Placement
from linkgauge.model.errors import AllocationError
from linkgauge.model.hardware.motion import Movement
from linkgauge.model.memory import Memory
from linkgauge.model.transfer import CHUNK
from linkgauge.model.units import approximate_size

from .run_position import Noise, RunPosition

WINDOW = 8 * CHUNK
"""The number of real bytes in a buffer. It is an even number of chunks."""
_ZEROS = bytes(WINDOW)
_ALL_BITS = bytes(range(255, -1, -1))


Stored = tuple[Pattern, int, bool]
"""The content of memory: a pattern, its seed, and whether all bits are inverted. SPLIT is stored as
WORDS."""


class Tail(NamedTuple):
    """What even and odd chunks of a buffer contain beyond its window. None: nothing was written."""

    even: Stored | None
    odd: Stored | None


class SimBuffer:
    """A buffer. `room` has each memory's free bytes. Raises AllocationError if they are too few."""

    warnings = ()

    def __init__(self, memory: Memory, size: int, room: dict[Memory, int]) -> None:
        self.memory = memory
        self.size = size
        self.window: bytes | bytearray = bytes(size) if size < WINDOW else _ZEROS
        self.tail = Tail(None, None)
        self.flipped: dict[int, int] = {}
        """Flipped bits beyond the window, by the offset of their byte."""
        left = room[memory.place]
        if size > left:
            raise AllocationError(
                f"allocate {approximate_size(size)} of {memory}",
                f"out of memory: {approximate_size(left)} are left",
            )
        room[memory.place] -= size
        self._room: dict[Memory, int] | None = room

    def placement(self) -> Placement:
        node = self.memory.index if self.memory.is_host else None
        locked = self.memory.kind != "pageable" if self.memory.is_host else None
        huge = self.size if self.memory.kind == "huge" else None
        return Placement(str(self.memory), self.size, node, locked, huge)

    def free(self) -> None:
        if self._room is not None:
            self._room[self.memory.place] += self.size
            self._room = None

    def fill(self, size: int, pattern: Pattern, seed: int, inverted: bool) -> None:
        """Fills `size` bytes. Those beyond the window are not stored: all get the pattern."""
        self.window = _over(_window(pattern, seed, inverted), self.window, size)
        if size > WINDOW:
            self.tail = _tail(pattern, seed, inverted)
            self.flipped = {at: bits for at, bits in self.flipped.items() if at >= size}

    def first_mismatch(self, size: int, pattern: Pattern, seed: int) -> int | None:
        near = min(size, WINDOW)
        expected = _window(pattern, seed, False)
        if self.window[:near] != expected[:near]:
            return next(at for at in range(near) if self.window[at] != expected[at])
        bad = [*self.flipped]
        wanted = _tail(pattern, seed, False)
        if self.tail.even != wanted.even:
            bad.append(WINDOW)
        if self.tail.odd != wanted.odd:
            bad.append(WINDOW + CHUNK)
        first = min(bad, default=size)
        return first if first < size else None

    def checksum(self, size: int) -> int:
        """Returns a checksum. Equal contents have equal checksums."""
        total, words = int.from_bytes(self.window[:size], "little"), WINDOW // 8
        while words > 1:  # one half upon the other
            words //= 2
            total = total >> 64 * words ^ total & (1 << 64 * words) - 1
        if size > WINDOW:
            total ^= hash(self.tail) & 0xFFFF_FFFF
            total = reduce(xor, (bits << at % 8 * 8 for at, bits in self.flipped.items()), total)
        return total

    def flip(self, offset: int, bit: int) -> None:
        if offset < WINDOW:
            self.writable()[offset] ^= 1 << bit
            return
        self.flipped[offset] = self.flipped.get(offset, 0) ^ 1 << bit
        if not self.flipped[offset]:
            del self.flipped[offset]

    def put(self, begin: int, data: bytes) -> None:
        """Writes data into the window at `begin`. Data that fill the window are not copied."""
        if len(data) == len(self.window):
            self.window = data
        else:
            self.writable()[begin : begin + len(data)] = data

    def writable(self) -> bytearray:
        """Returns the window as a bytearray. A window of shared bytes is copied first."""
        if not isinstance(self.window, bytearray):
            self.window = bytearray(self.window)
        return self.window


def move(source: SimBuffer, destination: SimBuffer, size: int) -> None:
    destination.window = _over(source.window, destination.window, size)
    if size > WINDOW:
        destination.tail = source.tail
        destination.flipped = {at: bits for at, bits in source.flipped.items() if at < size}


def exchange(source: SimBuffer, destination: SimBuffer, size: int) -> None:
    """Copies both ways (`<->`): odd chunks go to the destination, even chunks to the source."""
    ways = destination.window, source.window  # of even chunks and of odd chunks
    starts = range(0, min(size, WINDOW), CHUNK)
    both_ways = b"".join(ways[at // CHUNK % 2][at : at + CHUNK] for at in starts)
    for buffer in (source, destination):
        buffer.window = _over(both_ways, buffer.window, size)
    if size > WINDOW:
        source.tail = destination.tail = Tail(destination.tail.even, source.tail.odd)
        both = {at: bits for at, bits in source.flipped.items() if at // CHUNK % 2}
        both |= {at: bits for at, bits in destination.flipped.items() if not at // CHUNK % 2}
        source.flipped, destination.flipped = both, dict(both)


def compute(source: SimBuffer, destination: SimBuffer, size: int, made: Pattern, seed: int) -> None:
    """Writes the pattern `made`, but only if the source holds the pattern NUMBERS of `seed`."""
    if source.first_mismatch(source.size, Pattern.NUMBERS, seed) is None:
        destination.fill(size, made, seed, inverted=False)


@lru_cache(maxsize=1024)
def _tail(pattern: Pattern, seed: int, inverted: bool) -> Tail:
    if pattern is Pattern.SPLIT:
        return Tail((Pattern.WORDS, seed, not inverted), (Pattern.WORDS, seed, inverted))
    plain = pattern, seed, inverted
    return Tail(plain, plain)


def _over(new: bytes | bytearray, old: bytes | bytearray, size: int) -> bytes:
    if size >= len(old) == len(new):
        return bytes(new)  # the same bytes, if nothing can write to them
    return bytes(new[:size]) + bytes(old[size:])


@lru_cache(maxsize=1 << 12)
def _window(pattern: Pattern, seed: int, inverted: bool) -> bytes:
    plain = native.pattern_bytes(WINDOW, pattern, seed)
    return plain.translate(_ALL_BITS) if inverted else plain


# Groups of transfers.

StallSeconds = Callable[[int, int], float]
"""A function that returns the delay of a copy in seconds. Its arguments are the copy's index and
the sample's number."""


class SimGroup(Gated):
    """Transfers that run at once. `movements` has each copy's bytes over time, `sigmas` each copy's
    noise. `stall` returns the seconds by which a copy's sample is late. `makes` is the pattern that
    an operation on arrays writes, or None."""

    def __init__(
        self,
        copies: Sequence[Copy],
        movements: Sequence[Movement],
        sigmas: Sequence[Noise],
        course: RunPosition,
        stall: StallSeconds | None = None,
        policy: SamplingPolicy = SamplingPolicy(),  # noqa: B008
        makes: Pattern | None = None,
    ) -> None:
        self._copies = copies
        self._timed = list(zip(copies, movements, sigmas, strict=True))
        self._course = course
        self._stall = stall
        self.policy = policy
        self._makes = makes
        self._ends: list[Sequence[float]] = []
        """When each copy ends each batch, as if all batches were one loop."""

    def arm(self, loops: int, batches: int = 1) -> None:
        super().arm(loops, batches)
        if not self._ends or len(self._ends[0]) != batches:  # most samples have the same batches
            self._ends = []
            for _, movement, _ in self._timed:
                ends = [movement.at(batch / batches) for batch in range(1, batches)]
                self._ends.append([*ends, movement.end])

    def open(self) -> None:
        super().open()
        for copy in self._copies:  # once: further loops would move the same bytes
            source, destination = copy.source, copy.destination
            if not isinstance(destination, SimBuffer):
                continue
            if not isinstance(source, SimBuffer):
                destination.fill(copy.size, Pattern.CONSTANT, copy.seed, inverted=False)
            elif self._makes is not None:
                compute(source, destination, copy.size, self._makes, copy.seed)
            elif copy.transfer.both_ways:
                exchange(source, destination, copy.size)
            else:
                move(source, destination, copy.size)

    def wait(self) -> Timing:
        loops, batches = self.pass_gate()
        course = self._course
        seconds: list[float] = []
        progress: list[tuple[float, ...]] = []
        checksums: list[int | None] = []
        for number, (copy, movement, sigma) in enumerate(self._timed):
            factor = loops * batches * course.noise(number, sigma)
            stall = self._stall(number, course.sample) if self._stall is not None else 0.0
            ends = [end * factor + stall for end in self._ends[number]]
            progress.append((movement.turn * factor, *ends))
            # Counted from the common start: kernels of one device wait for each other.
            seconds.append(ends[-1])
            read = copy.source if copy.destination is None else None
            checksums.append(read.checksum(copy.size) if isinstance(read, SimBuffer) else None)
        course.pass_by(max(seconds))
        return Timing(tuple(seconds), max(seconds), tuple(checksums), tuple(progress))

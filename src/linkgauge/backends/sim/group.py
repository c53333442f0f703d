"""Transfers and collectives on a simulated machine: bytes move, numbers are computed, and time is
simulated. Only a buffer's first bytes, its window, are real; of others, flipped bits are kept."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable, Hashable, Iterator, Sequence
from functools import lru_cache

from linkgauge.backends.number_bytes import combine, decode, encode
from linkgauge.backends.operations.collectives import CollectiveGroup, RankShare
from linkgauge.backends.protocol import Copy, Gated, Pattern, SamplingPolicy, Timing, Wrong
from linkgauge.model.errors import BackendError
from linkgauge.model.hardware.motion import Movement
from linkgauge.model.operations.collective import Collective

from .memory import WINDOW, SimBuffer, compute, exchange, move
from .run_position import Noise, RunPosition

StallSeconds = Callable[[int, int], float]
"""A function that returns the delay of a copy in seconds. Its arguments are the copy's index and
the sample's number."""


class SimGroup(Gated):
    """`movements` and `sigmas` are each copy's progress and noise. `stall` returns the seconds by
    which a sample of a copy is late. `makes` is the pattern that an operation on numbers writes."""

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
        self._policies = list(zip(movements, sigmas, strict=True))
        self._course = course
        self._stall = stall
        self.policy = policy
        self._makes = makes
        self._ends: Sequence[Sequence[float]] = ()
        """When each copy ends each batch, as if all batches were one loop."""

    def arm(self, loops: int, batches: int = 1) -> None:
        super().arm(loops, batches)
        if not self._ends or len(self._ends[0]) != batches:  # most samples have the same batches
            self._ends = [
                [*(movement.at(batch / batches) for batch in range(1, batches)), movement.end]
                for movement, _ in self._policies
            ]

    def open(self) -> None:
        super().open()
        for copy in self._copies:
            _move_bytes(copy, self._makes)

    def wait(self) -> Timing:
        loops, batches = self.pass_gate()
        course = self._course
        progress = tuple(
            self._progress(number, movement, loops * batches * course.noise(number, sigma))
            for number, (movement, sigma) in enumerate(self._policies)
        )
        # Counted from the common start: kernels of one device wait for each other.
        seconds = tuple(times[-1] for times in progress)
        course.pass_by(max(seconds))
        return Timing(seconds, max(seconds), tuple(map(_checksum, self._copies)), progress)

    def _progress(self, number: int, movement: Movement, loops: float) -> tuple[float, ...]:
        stall = self._stall(number, self._course.sample) if self._stall is not None else 0.0
        return (movement.turn * loops, *[end * loops + stall for end in self._ends[number]])


def _move_bytes(copy: Copy, makes: Pattern | None) -> None:
    """Moves the bytes of one loop, because further loops would move the same bytes."""
    source, destination = copy.source, copy.destination
    if not isinstance(destination, SimBuffer):
        return
    if not isinstance(source, SimBuffer):
        destination.fill(copy.size, Pattern.CONSTANT, copy.seed, inverted=False)
    elif makes is not None:
        compute(source, destination, copy.size, makes, copy.seed)
    elif copy.transfer.both_ways:
        exchange(source, destination, copy.size)
    else:
        move(source, destination, copy.size)


def _checksum(copy: Copy) -> int | None:
    if copy.destination is None and isinstance(copy.source, SimBuffer):
        return copy.source.checksum(copy.size)
    return None


_MOST_RANKS = 1 << 12
"""A number larger than that of any machine's ranks. It separates the random numbers of ranks."""


class SimCollective(CollectiveGroup):
    """`seconds` is each rank's time for an iteration, `sigmas` its noise. All ranks of a group wait
    for one that `stall` delays. `flip` flips bits of received data, as faults require."""

    def __init__(
        self,
        copies: Sequence[Copy],
        work: Collective,
        seconds: Sequence[float],
        sigmas: Sequence[Noise],
        course: RunPosition,
        stall: StallSeconds | None,
        flip: Callable[[], None],
    ) -> None:
        super().__init__(work)
        self._copies = copies
        self._groups = work.groups(len(copies))
        self._seconds = seconds
        self._sigmas = sigmas
        self._course = course
        self._stall = stall
        self._flip = flip
        self.policy = SamplingPolicy(steps=work.aggregated)

    def wait(self) -> Timing:
        loops, batches = self.pass_gate()
        course = self._course
        taken = [
            self._seconds[rank] * loops * batches * course.noise(rank, self._sigmas[rank]) + last
            for rank, (_, last) in enumerate(self._delays(course.sample))
        ]
        course.pass_by(max(taken))
        progress = tuple(
            (0.0, *(own * batch / batches for batch in range(1, batches)), own) for own in taken
        )
        return Timing(tuple(taken), max(taken), (None,) * len(taken), progress)

    def _delays(self, sample: int) -> list[tuple[float, float]]:
        ranks, stall = range(len(self._copies)), self._stall
        own = [stall(rank, sample) if stall is not None else 0.0 for rank in ranks]
        last = {rank: max(own[one] for one in group) for group in self._groups for rank in group}
        return [(own[rank], last[rank]) for rank in ranks]

    def iterations(self, count: int) -> tuple[tuple[float, ...], ...]:
        """Returns each rank's seconds. A late rank waits less for others: its time is shorter."""
        found: list[list[float]] = [[] for _ in self._copies]
        for number in range(count):
            for rank, (late, last) in enumerate(self._delays(number)):
                noise = self._course.noise((number + 1) * _MOST_RANKS + rank, self._sigmas[rank])
                found[rank].append(self._seconds[rank] * noise + last - late)
        return tuple(map(tuple, found))

    def fill(self) -> None:
        for group in self._groups:
            if any(self._copies[rank].destination is None for rank in group):
                raise BackendError("check", "no buffers")
            for part in self._shares(group):
                _fill(*part, self._seed)

    def carry_out(self, loops: int) -> None:
        for group in self._groups:
            _carry_out(self._work, self._shares(group))
        self._flip()

    def found(self) -> Iterator[Wrong]:
        for group in self._groups:
            known: _Compared = {}
            for place, part in zip(group, self._shares(group), strict=True):
                count, first = _wrong(*part, self._seed, known)
                yield Wrong(count, place, first)

    def _shares(self, group: Sequence[int]) -> list[tuple[Copy, RankShare]]:
        copies = [self._copies[place] for place in group]
        return [
            (copy, RankShare(self._work, rank, len(group), min(copy.size, WINDOW)))
            for rank, copy in enumerate(copies)
        ]


def _fill(copy: Copy, share: RankShare, seed: int) -> None:
    received = _buffer(copy)
    received.window = bytes(len(received.window))
    received.flipped = {}
    _sent(copy).put(share.sends_at, _data(share, seed))


# Ranks send the same data at each repetition, whatever the size of the buffer beyond its window.
@lru_cache(maxsize=1 << 8)
def _data(share: RankShare, seed: int) -> bytes:
    data = bytearray(share.counts.send * share.work.number.bytes)
    share.fill(_address(data), seed, _cpus())
    return bytes(data)


def _carry_out(work: Collective, parts: Sequence[tuple[Copy, RankShare]]) -> None:
    each = work.number.bytes
    sent = [
        bytes(_sent(copy).window[share.sends_at :][: share.counts.send * each])
        for copy, share in parts
    ]
    reduced = b""
    if work.reduction is not None:
        numbers = [decode(work.type, own) for own in sent]
        reduced = encode(work.type, combine(work.reduction, numbers))
    for copy, share in parts:
        origin, counts = share.origin, share.counts
        if origin is None:
            continue
        if work.reduction is not None:
            data = reduced[origin.base * each : (origin.base + counts.receive) * each]
        else:
            chunk = min(origin.chunk, counts.receive)
            own = slice(origin.base * each, (origin.base + chunk) * each)
            many = counts.receive // chunk if chunk else 0
            data = b"".join(sent[origin.first + place][own] for place in range(many))
        _buffer(copy).put(share.receives_at, data)


_Compared = dict[Hashable, tuple[int, int]]
"""What was found wrong in data that ranks received. All ranks of a reduction receive the same."""


def _wrong(copy: Copy, share: RankShare, seed: int, known: _Compared) -> tuple[int, int]:
    if share.origin is None:
        return 0, 0
    begin, window = share.receives_at, bytes(_buffer(copy).window)
    received = window, share.origin, share.counts, begin
    if received not in known:
        data = bytearray(window)
        known[received] = share.wrong(_address(data) + begin, seed, _cpus())
    count, first = known[received]
    more = _altered(copy, share) if not begin else []
    return count + len(more), first if count or not more else more[0]


def _altered(copy: Copy, share: RankShare) -> list[int]:
    each, buffer = share.work.number.bytes, _buffer(copy)
    done = share.counts.receive * each
    all_bytes = share.work.counts(copy.size, share.ranks).receive * each
    near = range(done, min(len(buffer.window), all_bytes))
    flipped = [at for at in near if buffer.window[at]] if not share.work.in_place else []
    flipped += [at for at in buffer.flipped if at < all_bytes]
    return sorted({at // each for at in flipped})


def _sent(copy: Copy) -> SimBuffer:
    return copy.source if isinstance(copy.source, SimBuffer) else _buffer(copy)


def _address(window: bytearray) -> int:
    return ctypes.addressof((ctypes.c_uint8 * len(window)).from_buffer(window))


def _buffer(copy: Copy) -> SimBuffer:
    if not isinstance(copy.destination, SimBuffer):
        raise BackendError("buffer", f"{copy.transfer} uses no buffers of this machine")
    return copy.destination


def _cpus() -> tuple[int, ...]:
    return (min(os.sched_getaffinity(0)),)

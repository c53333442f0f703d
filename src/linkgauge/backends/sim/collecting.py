"""Collectives of a simulated machine: the numbers are really computed, the time is virtual.

The numbers are those of the buffers' windows: of more bytes, the same collective of as many as a
window has is carried out in their first bytes, and of the rest only flipped bits are kept.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable, Sequence

from linkgauge import _native
from linkgauge.backends.number_bytes import combine, decode, encode
from linkgauge.backends.protocol import Copy, Gated, Pace, Timing, Wrong
from linkgauge.model.collective import (
    Collective,
    Counts,
    content_fields,
    origin_of,
)
from linkgauge.model.errors import BackendError

from .group import StallSeconds
from .memory import WINDOW, SimBuffer
from .run_position import RunPosition

_SEED = 1
_MOST_RANKS = 1 << 12
"""More than a machine has: a draw of an iteration is numbered by both."""


class CollectiveGroup(Gated):
    """A collective behind a gate: `seconds` are those of an iteration, by rank, with the relative
    noise `sigmas`. What comes late by `stall`, all others of its group wait for. `flip` lets the
    faults strike that alter what was received."""

    def __init__(
        self,
        copies: Sequence[Copy],
        work: Collective,
        seconds: Sequence[float],
        sigmas: Sequence[float],
        course: RunPosition,
        stall: StallSeconds | None,
        flip: Callable[[], None],
    ) -> None:
        self._copies = copies
        self._work = work
        self._groups = work.groups(len(copies))
        self._seconds = seconds
        self._sigmas = sigmas
        self._course = course
        self._stall = stall
        self._flip = flip
        self.pace = Pace(steps=work.aggregated)

    def wait(self) -> Timing:
        loops, laps = self.pass_gate()
        course = self._course
        late = [self._late(rank, course.sample) for rank in range(len(self._copies))]
        taken = [
            seconds * loops * laps * course.noise(rank, sigma)
            for rank, (seconds, sigma) in enumerate(zip(self._seconds, self._sigmas, strict=True))
        ]
        for group in self._groups:
            waited = max(late[rank] for rank in group)
            for rank in group:
                taken[rank] += waited
        course.pass_by(max(taken))
        progress = tuple((0.0, *(own * lap / laps for lap in range(1, laps)), own) for own in taken)
        return Timing(tuple(taken), max(taken), (None,) * len(taken), progress)

    def _late(self, rank: int, sample: int) -> float:
        return self._stall(rank, sample) if self._stall is not None else 0.0

    def iterations(self, count: int) -> tuple[tuple[float, ...], ...]:
        """A rank that comes late is the one that does not wait."""
        found: list[list[float]] = [[] for _ in self._copies]
        for number in range(count):
            late = [self._late(rank, number) for rank in range(len(self._copies))]
            for group in self._groups:
                last = max(late[rank] for rank in group)
                for rank in group:
                    draw = (number + 1) * _MOST_RANKS + rank
                    noise = self._course.noise(draw, self._sigmas[rank])
                    found[rank].append(self._seconds[rank] * noise + last - late[rank])
        return tuple(map(tuple, found))

    def check(self) -> Wrong:
        for group in self._groups:
            if any(self._copies[rank].destination is None for rank in group):
                raise BackendError("check", "no buffers")
            _carry_out(self._work, [self._copies[rank] for rank in group])
        self._flip()
        found = [
            (rank, *_count_wrong(self._work, self._copies[rank], number, len(group)))
            for group in self._groups
            for number, rank in enumerate(group)
        ]
        bad = [one for one in found if one[1]]
        if not bad:
            return Wrong()
        rank, _, first = min(bad)
        return Wrong(sum(count for _, count, _ in bad), rank, first)


def _counts(work: Collective, copy: Copy, ranks: int) -> Counts:
    """Those of what is really carried out."""
    return work.counts(min(copy.size, WINDOW), ranks)


def _carry_out(work: Collective, copies: Sequence[Copy]) -> None:
    """The collective of one group: what each rank sends is made, then received."""
    ranks, each = len(copies), work.number.bytes
    counts = _counts(work, copies[0], ranks)
    for copy in copies:
        received = _buffer(copy)
        received.window[:] = bytes(len(received.window))
        received.flipped = {}
    sent: list[bytes] = []
    for rank, copy in enumerate(copies):
        buffer = copy.source if isinstance(copy.source, SimBuffer) else _buffer(copy)
        begin = rank * counts.send_step * each if work.in_place else 0
        part = slice(begin, begin + counts.send * each)
        if counts.send:
            with_content = content_fields(work, ranks, _SEED)
            held = (ctypes.c_uint8 * len(buffer.window)).from_buffer(buffer.window)
            address = ctypes.addressof(held) + begin
            code = work.number.code
            _native.fill_content(address, counts.send, code, with_content, rank, _cpus())
        sent.append(bytes(buffer.window[part]))
    reduced = b""
    if work.reduction is not None:
        numbers = [decode(work.type, own) for own in sent]
        reduced = encode(work.type, combine(work.reduction, numbers))
    for rank, copy in enumerate(copies):
        origin = origin_of(work, counts, rank, ranks)
        if origin is None:
            continue
        begin = rank * counts.receive_step * each if work.in_place else 0
        if work.reduction is not None:
            data = reduced[origin.base * each : (origin.base + counts.receive) * each]
        else:
            chunk = min(origin.chunk, counts.receive)
            own = slice(origin.base * each, (origin.base + chunk) * each)
            many = counts.receive // chunk if chunk else 0
            data = b"".join(sent[origin.first + place][own] for place in range(many))
        _buffer(copy).window[begin : begin + len(data)] = data


def _count_wrong(work: Collective, copy: Copy, rank: int, ranks: int) -> tuple[int, int]:
    """How many elements of a rank's receive buffer are wrong, and the index of the first."""
    counts, each, buffer = _counts(work, copy, ranks), work.number.bytes, _buffer(copy)
    origin = origin_of(work, counts, rank, ranks)
    if origin is None or not counts.receive:
        return 0, 0
    begin = rank * counts.receive_step * each if work.in_place else 0
    held = (ctypes.c_uint8 * len(buffer.window)).from_buffer(buffer.window)
    address = ctypes.addressof(held) + begin
    where = (origin.first, origin.chunk, origin.base)
    count, first = _native.count_wrong(
        address,
        counts.receive,
        work.number.code,
        content_fields(work, ranks, _SEED),
        where,
        _cpus(),
    )
    more = _altered(work, copy, ranks) if not begin else []
    return count + len(more), first if count or not more else more[0]


def _altered(work: Collective, copy: Copy, ranks: int) -> list[int]:
    """The elements beyond what is really carried out that have a flipped bit."""
    each, buffer = work.number.bytes, _buffer(copy)
    done = _counts(work, copy, ranks).receive * each
    all_bytes = work.counts(copy.size, ranks).receive * each
    near = range(done, min(len(buffer.window), all_bytes))
    flipped = [at for at in near if buffer.window[at]] if not work.in_place else []
    flipped += [at for at in buffer.flipped if at < all_bytes]
    return sorted({at // each for at in flipped})


def _buffer(copy: Copy) -> SimBuffer:
    """A rank's receive buffer."""
    if not isinstance(copy.destination, SimBuffer):
        raise BackendError("buffer", f"{copy.transfer} uses no buffers of this machine")
    return copy.destination


def _cpus() -> tuple[int, ...]:
    return (min(os.sched_getaffinity(0)),)

"""Pointer chases by one work-item. The ring of pointers is checked before the chase. After it, the
last address is compared with the expected one."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count

import msgspec
import numpy as np
import pyopencl as cl

from linkgauge.backends.protocol import Copy, Pace
from linkgauge.model.errors import BackendError, Unsupported
from linkgauge.model.units import approximate_size, format_size

from .group import Lane, OpenCLGroup
from .memory import OpenCLBuffer, Words, own
from .runtime import ALONE, OpenCLDevice

HOPS = 16_381
"""The number of accesses in a loop, about as many as in a chase by a host thread. It is a prime, so
that a loop hardly ever ends where it began; that would look like no access at all."""
_FILE = "chase"
_MASK = (1 << 64) - 1
_ROUNDS = 4
_UNBOUNDED = 1 << 30
_orders = count(1)
"""A counter that gives each ring another order, even in memory that held a ring before."""


class Ring(msgspec.Struct, frozen=True):
    """A ring of cache lines through which a chase goes. `lines` is their number, and `stride` their
    distance in bytes. The order depends on `seed` (chase.cl)."""

    lines: int
    stride: int
    seed: int

    @property
    def bits(self) -> int:
        return (self.lines - 1).bit_length()

    def offset(self, hops: int) -> int:
        place = self._shuffled(hops % self.lines)
        while place >= self.lines:
            place = self._shuffled(place)
        return place * self.stride

    def _shuffled(self, x: int) -> int:
        seed = self.seed
        for _ in range(_ROUNDS):
            seed = _mixed(seed + 0x9E3779B97F4A7C15)
            x = (x + seed) * 0xBF58476D1CE4E5B9 & ((1 << self.bits) - 1)
            x ^= x >> (self.bits + 1) // 2
        return x


def _mixed(x: int) -> int:
    x = ((x & _MASK) ^ (x & _MASK) >> 30) * 0xBF58476D1CE4E5B9 & _MASK
    x = (x ^ x >> 27) * 0x94D049BB133111EB & _MASK
    return x ^ x >> 31


def chase(unit: OpenCLDevice, copy: Copy) -> ChaseGroup:
    """Raises Unsupported if the source is less than one line, and BackendError if the ring is
    damaged."""
    size, source = copy.size, own(copy.source)
    if size < unit.cache_line:
        raise Unsupported(f"{copy.transfer}: {size} bytes are less than a cache line")
    ring = Ring(size // unit.cache_line, unit.cache_line, copy.seed + next(_orders))
    _lay(unit, source, ring)
    return ChaseGroup(unit, source, ring)


def near_cache(unit: OpenCLDevice, size: int) -> Iterator[str]:
    """If the memory fits into the cache of a device that shares the host's memory."""
    device = unit.facts.device
    if device.shares_host_memory and size < unit.cache_bytes:
        held = f"the cache of {device.memory} ({approximate_size(unit.cache_bytes)})"
        yield f"{format_size(size)} fit in {held}: the figure may be the cache's"


def _lay(unit: OpenCLDevice, source: OpenCLBuffer, ring: Ring) -> None:
    """Follows the ring once, which also warms the caches. Raises BackendError if it misses a
    line."""
    memory, lines, stride = source.for_kernel(), np.uint64(ring.lines), np.uint64(ring.stride)
    order = np.uint64(ring.seed & _MASK), np.uint32(ring.bits)
    unit.run("lay_ring", memory, lines, stride, *order, file=_FILE)
    length = Words(unit)
    unit.run("ring_length", memory, lines, stride, length.buffer, file=_FILE, alone=True)
    if length.total() != ring.lines:
        problem = f"a ring of {length.total()} lines instead of {ring.lines}"
        raise BackendError("link pointers", f"{source.memory}: {problem}")


class ChaseGroup(OpenCLGroup):
    """A group with one pointer chase (protocol.CheckedGroup). A lap is one launch, which continues
    where the last one ended."""

    pace = Pace(loops=1, steps=HOPS)

    def __init__(self, unit: OpenCLDevice, source: OpenCLBuffer, ring: Ring) -> None:
        self._ring, self._memory, self._queue = ring, source.memory, unit.profiled_queue()
        super().__init__([Lane(unit, self._queue, launch=self._follow, does="a chase")])
        self.most_loops = _UNBOUNDED
        self._at = Words(unit)
        self._at.store(ring.offset(0))
        arguments = source.for_kernel(), self._at.buffer, np.uint64(0)
        self._kernel = unit.kernel("chase", *arguments, file=_FILE)
        self._hops = 0
        """The accesses enqueued so far, counted from the ring's beginning."""

    def _follow(self, loops: int, wait_for: list[cl.Event] | None) -> cl.Event:
        self._kernel.set_arg(2, np.uint64(loops * HOPS))
        event = cl.enqueue_nd_range_kernel(self._queue, self._kernel, *ALONE, wait_for=wait_for)
        self._hops += loops * HOPS
        return event

    def mismatch(self) -> str | None:
        at, right = self._at.total(), self._ring.offset(self._hops)
        if at == right:
            return None
        return f"{self._memory}: {self._hops} accesses led to byte {at} instead of {right}"

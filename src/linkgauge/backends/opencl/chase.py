"""How one work-item follows pointers. The ring is checked before, and the last address after it."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from typing import Any

import msgspec
import numpy as np
import pyopencl as cl

from linkgauge.backends.protocol import Copy, SamplingPolicy
from linkgauge.model.errors import BackendError, Unsupported
from linkgauge.model.units import approximate_size, format_size

from .group import Lane, OpenCLGroup
from .memory import OpenCLBuffer, Words, own
from .runtime import ALONE, OpenCLDevice

HOPS = 16_381
"""The number of accesses in a loop, about as many as in a chase by a host thread. It is a prime, so
that a loop hardly ever ends where it began; that would look like no access at all."""
_FILE = "chase"
_UNBOUNDED = 1 << 30
_orders = count(1)
"""A counter that gives each ring another order, even in memory that held a ring before."""


class Ring(msgspec.Struct, frozen=True):
    """A ring of cache lines, `stride` bytes apart, whose order follows from `seed` (chase.cl)."""

    lines: int
    stride: int
    seed: int

    @property
    def words(self) -> tuple[Any, ...]:
        bits = (self.lines - 1).bit_length()
        seed = self.seed % (1 << 64)
        return np.uint64(self.lines), np.uint64(self.stride), np.uint64(seed), np.uint32(bits)


def chase(unit: OpenCLDevice, copy: Copy) -> ChaseGroup:
    """Returns a pointer chase. Raises Unsupported if the source is smaller than a cache line, and
    BackendError if the device stored wrong pointers."""
    size, source = copy.size, own(copy.source)
    if size < unit.cache_line:
        raise Unsupported(f"{copy.transfer}: {size} bytes are less than a cache line")
    ring = Ring(size // unit.cache_line, unit.cache_line, copy.seed + next(_orders))
    _lay(unit, source, ring)
    return ChaseGroup(unit, source, ring)


def near_cache(unit: OpenCLDevice, size: int) -> Iterator[str]:
    device = unit.facts.device
    if device.shares_host_memory and size < unit.cache_bytes:
        held = f"the cache of {device.memory} ({approximate_size(unit.cache_bytes)})"
        yield f"{format_size(size)} fit in {held}: the figure may be the cache's"


def _lay(unit: OpenCLDevice, source: OpenCLBuffer, ring: Ring) -> None:
    memory, length = source.for_kernel(), Words(unit)
    unit.run("lay_ring", memory, *ring.words, file=_FILE)
    unit.run("ring_length", memory, *ring.words[:2], length.buffer, file=_FILE, alone=True)
    if length.total() != ring.lines:
        problem = f"a ring of {length.total()} lines instead of {ring.lines}"
        raise BackendError("link pointers", f"{source.memory}: {problem}")


class ChaseGroup(OpenCLGroup):
    """A pointer chase. A batch is one launch, which continues where the previous one ended."""

    policy = SamplingPolicy(loops=1, steps=HOPS)

    def __init__(self, unit: OpenCLDevice, source: OpenCLBuffer, ring: Ring) -> None:
        self._unit, self._ring, self._memory = unit, ring, source.memory
        self._queue = unit.profiled_queue()
        super().__init__([Lane(unit, self._queue, launch=self._follow, does="a chase")])
        self.most_loops = _UNBOUNDED
        self._hops = 0
        """The accesses enqueued so far, counted from the ring's beginning."""
        self._at = self._right()
        arguments = source.for_kernel(), self._at.buffer, np.uint64(0)
        self._kernel = unit.kernel("chase", *arguments, file=_FILE)

    def _follow(self, loops: int, wait_for: list[cl.Event] | None) -> cl.Event:
        self._kernel.set_arg(2, np.uint64(loops * HOPS))
        event = cl.enqueue_nd_range_kernel(self._queue, self._kernel, *ALONE, wait_for=wait_for)
        self._hops += loops * HOPS
        return event

    def _right(self) -> Words:
        found, place = Words(self._unit), np.uint64(self._hops % self._ring.lines)
        words = place, *self._ring.words, found.buffer
        self._unit.run("line_offset", *words, file=_FILE, alone=True)
        return found

    def mismatch(self) -> str | None:
        at, right = self._at.total(), self._right().total()
        if at == right:
            return None
        return f"{self._memory}: {self._hops} accesses led to byte {at} instead of {right}"

"""Measures how large a buffer must be to exceed the caches: its size doubles until neither the rate
of reads nor the latency changes. A virtual machine may get less cache than it sees. Other programs
may end a search too early, so a stored size only grows."""

from __future__ import annotations

import time
from contextlib import closing, suppress
from pathlib import Path
from typing import NamedTuple

from linkgauge import _native
from linkgauge.model.hardware.machine import Node

from . import cache
from .host_chase import HOPS

SECONDS = 1.2
"""The most seconds that the search takes."""
SAME = 0.05
"""Two speeds are alike if they differ by less than this ratio."""
TURNS = 7
"""The number of passes over a buffer that are timed. The fastest counts, because other programs
make passes slower, but never faster."""
NEXT_TAKES = 2.5
"""A buffer of twice the size takes about this many times as long to get and to measure."""
_SEED = 7
_KEY = "buffer"


class Speed(NamedTuple):
    """The times of memory accesses in seconds: `byte` for each byte when all CPUs read, `access`
    for each access of a pointer chase by one CPU."""

    byte: float
    access: float

    def is_like(self, other: Speed) -> bool:
        pairs = zip(self, other, strict=True)
        return all(abs(one / another - 1) < SAME for one, another in pairs)


def remembered(node: Node, least: int, most: int, file: Path) -> int:
    """Returns the size in `file` (up to `most`), or a larger one that a search finds and stores."""
    known = cache.load(file, dict[str, int]).get(_KEY, 0)
    found = beyond_caches(node, max(least, min(known, most)), most)
    if found > known:
        with suppress(OSError):  # the next run searches again
            cache.store(file, {_KEY: found})
    return found


def beyond_caches(node: Node, least: int, most: int, seconds: float = SECONDS) -> int:
    """Returns a size from `least` to `most` bytes from which on the speed no longer changes. If
    time or memory is short, returns the largest size that was measured."""
    if 2 * least > most:
        return least
    ends = time.monotonic() + seconds
    size, before = least, None
    while True:
        began = time.monotonic()
        try:
            speed = speed_of(node, size)
        except OSError:  # no memory for it
            return least if before is None else size // 2
        if before is not None and speed.is_like(before):
            return size // 2
        now = time.monotonic()
        if 2 * size > most or now + NEXT_TAKES * (now - began) > ends:
            return size
        size, before = 2 * size, speed


def speed_of(node: Node, size: int) -> Speed:
    """Measures a buffer of `size` bytes. Raises OSError if memory is short."""
    cpus = list(node.cpus)
    memory = _native.Memory(size, _native.Kind.PINNED, None, cpus)
    with closing(memory):
        address, op = memory.address, _native.Op.READ
        read = _native.Job(op, address, 0, size, 0, cpus, kernel=_native.linear_kernel(op))
        byte = _fastest(read) / size
        _native.link_cycle(address, size, _SEED, cpus[0])
        access = _fastest(_native.Job(op, address, 0, size, 0, cpus[:1], chase=HOPS)) / HOPS
    return Speed(byte, access)


def _fastest(job: _native.Job) -> float:
    with closing(_native.Team([job])) as team:
        spans = []
        for _ in range(1 + TURNS):
            team.arm(1)
            team.open()
            (span,) = team.wait()
            spans.append(span.end - span.begin)
    return min(spans[1:])

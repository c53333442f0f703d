"""How the fastest of several kernels is found, in rounds that each drop the slower half. Other
programs make some turns slower and none faster. Kernels therefore take many short turns in random
order, and the lower quartile of their times is compared."""

from __future__ import annotations

import math
import random
import struct
import time
from collections.abc import Mapping, Sequence
from statistics import median
from typing import Protocol

from linkgauge import _native

Speeds = Mapping[str, Sequence[float]]
"""The seconds per byte of each turn, by kernel."""

TURNS = 5
FINAL_TURNS = 15
"""The number of turns of each kernel in the last round."""
FINALISTS = 2
FEW = 4
"""If at most this many kernels are left, their narrower variants join the search."""
REVERSED_WINS = 12
REVERSED_BY = 1.02
"""The second best kernel replaces the best if it is faster by this factor in the median. It must
also win so many turns that chance is unlikely (2 % in a sign test)."""


class Arena(Protocol):
    def take_turns(
        self, op: _native.Op, kernels: Sequence[str], turns: int, seconds: float
    ) -> Speeds:
        """Runs each kernel `turns` times, in about `seconds` for all turns together."""

    def close(self) -> None: ...


def search(
    course: Arena, op: _native.Op, kernels: Sequence[str], safe: Sequence[str], seconds: float
) -> tuple[str, ...]:
    """Returns the best kernels, the best first, after about `seconds`. `safe` are kernels that are
    good on nearly every CPU; they join the last round."""
    # The width hardly matters: first the widest vectors, later narrower variants of the best.
    field = _widest(kernels)
    absent = [kernel for kernel in kernels if kernel not in field]
    last = seconds / 2
    each = (seconds - last) / (math.ceil(math.log2(max(len(field), 2))) + 1)
    while len(field) > FINALISTS or absent:
        if len(field) > FINALISTS:
            ranked = _ranked(course.take_turns(op, field, TURNS, each))
            field = ranked[: max(FINALISTS, (len(ranked) + 1) // 2)]
        if absent and len(field) <= FEW:
            families = {_family(kernel) for kernel in field}
            field = [*field, *(kernel for kernel in absent if _family(kernel) in families)]
            absent = []
    # The last round takes half of the time, so that no kernel is first only by luck.
    final = dict.fromkeys((*field, *safe))
    return tuple(_ranked(course.take_turns(op, tuple(final), FINAL_TURNS, last)))


def is_reversed(course: Arena, op: _native.Op, best: str, second: str, seconds: float) -> bool:
    speeds = course.take_turns(op, (best, second), FINAL_TURNS, seconds)
    ratios = [one / other for one, other in zip(speeds[best], speeds[second], strict=True)]
    wins = sum(ratio > 1 for ratio in ratios)
    return wins >= REVERSED_WINS and median(ratios) > REVERSED_BY


def _ranked(speeds: Speeds) -> list[str]:
    return sorted(speeds, key=lambda kernel: lower_quartile(speeds[kernel]))


def lower_quartile(speeds: Sequence[float]) -> float:
    return sorted(speeds)[len(speeds) // 4]


_UNITS = ("avx512", "avx2")
"""Vector units, the widest first."""


def _family(kernel: str) -> str:
    return "-".join(part for part in kernel.split("-") if part not in _UNITS)


def _widest(kernels: Sequence[str]) -> list[str]:
    widest = {_family(kernel): kernel for kernel in kernels if _UNITS[0] not in kernel}
    widest |= {_family(kernel): kernel for kernel in kernels if _UNITS[0] in kernel}
    return list(widest.values())


BEYOND = 4
"""Large memory is this many times as large as the caches, if so much is available."""
SHARE = 4
"""The memory takes at most 1/SHARE of the available memory."""
WITHIN = 4
"""Small memory takes 1/WITHIN of the caches, and at most WITHIN_MOST bytes per thread."""
WITHIN_MOST = 4 << 20
LEAST_WINDOW = 1 << 20
"""The smallest number of bytes that a thread moves in a turn."""
ROUGH_WINDOW = 8 << 20
"""The number of bytes that a thread moves for the first estimate."""
_SEED = 7
(_ONE,) = struct.unpack("=Q", struct.pack("=d", 1.0))
"""The word that kernels write. It is the floating-point number 1, because other kernels compute
with it. Denormal numbers would make computing 30 times as slow."""
_PAGE = 4096


class NativeArena:
    """Memory in which kernels are timed. It exceeds the caches if `beyond`. May raise OSError."""

    def __init__(
        self, node: int | None, cpus: Sequence[int], available: int | None, *, beyond: bool
    ) -> None:
        caches = _native.last_level_cache(cpus)
        size = BEYOND * caches if beyond else min(caches // WITHIN, WITHIN_MOST * len(cpus))
        if available is not None:
            size = min(size, available // SHARE)
        self._size = max(size // (2 << 20), 1) * (2 << 20)
        self._cpus = list(cpus)
        self._least = LEAST_WINDOW * len(cpus) if beyond else self._size
        self._memory = _native.Memory(self._size, _native.Kind.PINNED, node, self._cpus)
        self._speeds: dict[_native.Op, float] = {}
        self._window = 0
        self._shuffle = random.Random(_SEED).shuffle  # noqa: S311 (no secret: an order)

    def take_turns(
        self, op: _native.Op, kernels: Sequence[str], turns: int, seconds: float
    ) -> Speeds:
        job = self._job(op)
        if op not in self._speeds:
            self._speeds[op] = self._rough_speed(op, job)
        # Each turn covers one window untimed, then others timed.
        share = seconds / (turns * len(kernels)) / self._speeds[op]
        window = int(min(max(share / 2, self._least), job.size)) // _PAGE * _PAGE
        loops = max(1, int(share / window) - 1)
        speeds: dict[str, list[float]] = {kernel: [] for kernel in kernels}
        begun = time.monotonic()
        order = list(kernels)
        for _ in range(turns):
            self._shuffle(order)
            taken = _native.race(job, order, window, self._window, loops)
            self._window = (self._window + 2 * len(order)) % max(1, job.size // window)
            for kernel, took in zip(order, taken, strict=True):
                speeds[kernel].append(took / (window * loops))
        # Wall-clock time, including what other processes used: `seconds` is wall-clock time too.
        moved = window * (loops + 1) * turns * len(kernels)
        self._speeds[op] = (time.monotonic() - begun) / moved
        return speeds

    def _rough_speed(self, op: _native.Op, job: _native.Job) -> float:
        window = min(ROUGH_WINDOW * len(self._cpus), job.size) // _PAGE * _PAGE
        (took,) = _native.race(job, [_native.default_kernel(op, True)], window, self._window)
        return took / window

    def _job(self, op: _native.Op) -> _native.Job:
        half, third = self._size // 2, self._size // 3 // _PAGE * _PAGE
        base = self._memory.address
        ends = {
            _native.Op.READ: (base, 0, self._size),
            _native.Op.WRITE: (0, base, self._size),
            _native.Op.COPY: (base, base + half, half),
            _native.Op.SCALE: (base, base + half, half),
            _native.Op.TRIAD: (base, base + 2 * third, third),
        }
        return _native.Job(op, *ends[op], _ONE, self._cpus)

    def close(self) -> None:
        self._memory.close()

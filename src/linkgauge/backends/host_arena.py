"""Host memory for comparing kernels. The memory is either larger or smaller than the caches."""

from __future__ import annotations

import random
import struct
import time
from collections.abc import Sequence

from linkgauge import _native

from .host_search import Paces

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
    """Memory in which kernels are compared. `cpus` are the threads' CPUs. Each kernel moves a part
    of the memory, called a window. `beyond` makes the memory larger than the caches. Raises OSError
    if the memory cannot be allocated."""

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
        self._paces: dict[_native.Op, float] = {}
        self._window = 0
        self._shuffle = random.Random(_SEED).shuffle  # noqa: S311 (no secret: an order)

    def take_turns(
        self, op: _native.Op, kernels: Sequence[str], turns: int, seconds: float
    ) -> Paces:
        job = self._job(op)
        if op not in self._paces:
            self._paces[op] = self._rough_pace(op, job)
        # Each turn covers one window untimed, then others timed.
        share = seconds / (turns * len(kernels)) / self._paces[op]
        window = int(min(max(share / 2, self._least), job.size)) // _PAGE * _PAGE
        loops = max(1, int(share / window) - 1)
        paces: dict[str, list[float]] = {kernel: [] for kernel in kernels}
        begun = time.monotonic()
        order = list(kernels)
        for _ in range(turns):
            self._shuffle(order)
            taken = _native.race(job, order, window, self._window, loops)
            self._window = (self._window + 2 * len(order)) % max(1, job.size // window)
            for kernel, took in zip(order, taken, strict=True):
                paces[kernel].append(took / (window * loops))
        # Wall-clock time, including what other processes used: `seconds` is wall-clock time too.
        moved = window * (loops + 1) * turns * len(kernels)
        self._paces[op] = (time.monotonic() - begun) / moved
        return paces

    def _rough_pace(self, op: _native.Op, job: _native.Job) -> float:
        """Returns a first estimate of the seconds per byte, measured on one window."""
        window = min(ROUGH_WINDOW * len(self._cpus), job.size) // _PAGE * _PAGE
        (took,) = _native.race(job, [_native.default_kernel(op, True)], window, self._window)
        return took / window

    def _job(self, op: _native.Op) -> _native.Job:
        """Returns the job of an operation. A copy goes from one half of the memory to the other. A
        triad goes from the first two thirds to the last third."""
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

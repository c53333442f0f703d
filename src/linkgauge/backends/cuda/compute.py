"""A kernel that computes in registers alone, beside which copies run."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from ctypes import c_float
from typing import Any

from linkgauge.backends.overlap import FACTOR, SUMMAND, OverlapGroup, fit, launched

from .device import CudaDevice, Launch
from .driver import Driver
from .group import CudaGroup
from .verify import new_word, read_word, run
from .work import StreamWork

_THREADS, _BLOCKS_A_MULTIPROCESSOR = 256, 4
"""They keep every multiprocessor at work: a thread has several chains of steps."""
_WORD = 8


class ComputeWork(StreamWork):
    """One launch makes the `rounds` of all loops."""

    def __init__(self, device: CudaDevice) -> None:
        super().__init__(device)
        self.rounds = 1.0
        self._wrong: int | None = new_word(device)
        try:
            device.call("cuMemsetD8Async", self._wrong, 0, _WORD, device.aside)
            kernel = device.kernel("compute", "multiply_add")
            grid = device.multiprocessors * _BLOCKS_A_MULTIPROCESSOR, _THREADS
            arguments = (None, c_float(FACTOR), c_float(SUMMAND), self._wrong)
            self._launch = Launch(device, kernel, grid, arguments)
            # A kernel is loaded as it first runs, and the driver may wait for that: not behind a
            # gate.
            run(device, self._launch)
        except BaseException:
            self.close()
            raise

    def operations(self, loops: int) -> int:
        return 1

    def enqueue(self, streams: Sequence[Any], loops: int) -> None:
        self._launch.varying.value = launched(self.rounds, loops)
        self._launch.enqueue(streams[0])

    def mismatch(self) -> str | None:
        """That a thread found a wrong result, if one did."""
        if self._wrong is None or not read_word(self.device, self._wrong):
            return None
        return f"cuda:{self.device.index} computed wrongly"

    def close(self) -> None:
        """Idempotent: two groups have it."""
        word, self._wrong = self._wrong, None
        if word is not None:
            self.device.call("cuMemFree", word)


def beside_kernel(driver: Driver, device: CudaDevice, copies: CudaGroup) -> OverlapGroup:
    """The copies of a device without and with a kernel that takes about as long."""
    with ExitStack() as made:
        made.callback(copies.close)
        kernel = ComputeWork(device)
        made.callback(kernel.close)
        computing = CudaGroup(driver, [kernel])
        made.callback(computing.close)
        together = CudaGroup(driver, [kernel, *copies.works])
        made.callback(together.close)
        fit(kernel, computing, copies)
        return OverlapGroup(copies, computing, together, made.pop_all(), kernel)

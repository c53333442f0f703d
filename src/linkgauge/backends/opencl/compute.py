"""A kernel that computes in registers alone, beside which copies run."""

from __future__ import annotations

from functools import partial

import numpy as np
import pyopencl as cl

from linkgauge.backends.operations.overlap import FACTOR, SUMMAND, launched

from .buffer import Words
from .group import Enqueue, Lane
from .runtime import OpenCLDevice


class ComputeLane(Lane):
    """One launch makes the `rounds` of all loops of a lap."""

    _does = "a kernel"

    def __init__(self, unit: OpenCLDevice) -> None:
        super().__init__(unit)
        self.rounds = 1.0
        self._wrong = Words(unit)
        arguments = np.uint64(1), np.float32(FACTOR), np.float32(SUMMAND), self._wrong.buffer
        self._kernel = unit.kernel("multiply_add", *arguments, file="compute")

    def lap(self, loops: int) -> list[Enqueue]:
        return [partial(self._compute, loops)]

    def commands_of(self, loops: int) -> int:
        return 1

    def _compute(self, loops: int, wait_for: list[cl.Event] | None) -> cl.Event:
        self._kernel.set_arg(0, np.uint64(launched(self.rounds, loops)))
        grid = self.unit.geometry
        return cl.enqueue_nd_range_kernel(self.queue, self._kernel, *grid, wait_for=wait_for)

    def mismatch(self) -> str | None:
        """That a work-item found a wrong result, if one did."""
        return f"{self.unit.facts.device.memory} computed wrongly" if self._wrong.total() else None

"""Kernels without a destination: one computes in registers, another follows pointers."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from ctypes import c_float
from typing import Any

from linkgauge.backends.operations.overlap import FACTOR, SUMMAND, launched
from linkgauge.backends.protocol import Group, SamplingPolicy
from linkgauge.model.errors import Unsupported

from .device import CudaDevice, KernelLaunch, new_word, read_word, run
from .driver import Driver
from .group import CudaGroup
from .launches import chase_launches, link_launch
from .memory import CudaBuffer
from .work import StreamWork, in_pieces

_THREADS, _BLOCKS_A_MULTIPROCESSOR = 256, 4
"""The threads of a block and the blocks of a multiprocessor. They are enough to keep every
multiprocessor busy."""
_STRIDE = 128
_ACCESSES = 60_000
"""The stride in bytes and the number of accesses in a loop, as in nvbandwidth's pointer chase. All
multiprocessors together make this number of accesses."""


class ComputeWork:
    """A kernel that computes in registers. One launch does all loops, of `rounds` rounds each."""

    def __init__(self, device: CudaDevice, made: ExitStack) -> None:
        self.rounds = 1.0
        self.work = StreamWork(device, "kernel", self._enqueue, (0, 1))
        self._wrong = new_word(device, made, 0)
        grid = device.multiprocessors * _BLOCKS_A_MULTIPROCESSOR, _THREADS
        arguments = (None, c_float(FACTOR), c_float(SUMMAND), self._wrong)
        self._launch = KernelLaunch(device, "compute.multiply_add", grid, arguments)
        # A kernel is loaded as it first runs, and the driver may wait for that: not behind a gate.
        run(device, self._launch)

    def _enqueue(self, streams: Sequence[Any], loops: int) -> None:
        self._launch.varying.value = launched(self.rounds, loops)
        self._launch.enqueue(streams[0])

    def mismatch(self) -> str | None:
        device = self.work.device
        return f"cuda:{device.index} computed wrongly" if read_word(device, self._wrong) else None


def concurrent(
    driver: Driver, device: CudaDevice, copying: Group, made: ExitStack
) -> tuple[ComputeWork, Group, Group, Group]:
    """Returns a kernel that computes, and three groups: the kernel alone, the copies alone, and
    both at once. Raises Unsupported if the copies do not start by a gate (start signal)."""
    if not isinstance(copying, CudaGroup):
        raise Unsupported("only copies behind a gate begin with a kernel")
    kernel = ComputeWork(device, made)
    alone = CudaGroup(driver, [kernel.work])
    made.callback(alone.close)
    together = CudaGroup(driver, [kernel.work, *copying.works])
    made.callback(together.close)
    return kernel, alone, copying, together


def chase(
    driver: Driver, device: CudaDevice, ring: CudaBuffer, size: int, *, bulk: bool
) -> CudaGroup:
    """Returns a chase through `ring` by each multiprocessor in turn, with bulk copies if `bulk`."""
    count = max(1, size // _STRIDE)
    run(ring.home, link_launch(ring.home, ring.address, count, _STRIDE))
    each = max(1, _ACCESSES // device.multiprocessors)
    launches = chase_launches(device, ring.address, count, _STRIDE, each, bulk=bulk)
    group = CudaGroup(driver, [in_pieces(device, [launch.enqueue for launch in launches])])
    group.policy = SamplingPolicy(loops=1, steps=each * len(launches))
    return group

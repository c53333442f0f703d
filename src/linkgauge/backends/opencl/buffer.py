"""The base class of OpenCL buffers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyopencl as cl

from linkgauge.backends import offering
from linkgauge.backends.protocol import Buffer, Pattern
from linkgauge.model.documents.result import Placement
from linkgauge.model.errors import AllocationError, BackendError
from linkgauge.model.memory import Memory

from .runtime import OpenCLDevice, calling


class OpenCLBuffer:
    """The base class of OpenCL buffers. `unit` is the device that uses the buffer."""

    warnings: tuple[str, ...] = ()
    _release = "clReleaseMemObject"
    _buffer: Any = None
    """The buffer's OpenCL allocation, or None after release."""

    def __init__(self, unit: OpenCLDevice, memory: Memory, size: int) -> None:
        self.unit = unit
        self.memory = memory
        self.size = size

    def placement(self) -> Placement:
        return Placement(str(self.memory), self.size)

    def for_copy(self, size: int) -> Any:
        """Returns the buffer as an argument of a copy command. Raises BackendError if the buffer is
        for kernels."""
        raise BackendError("prepare", f"{self.memory} was allocated for sm, not for ce")

    def for_kernel(self) -> Any:
        """Returns the buffer as an argument of a kernel. Raises BackendError if the buffer is for
        copy commands."""
        raise BackendError("prepare", f"{self.memory} was allocated for ce, not for sm")

    def fill(self, size: int, pattern: Pattern, seed: int, inverted: bool) -> None:
        raise NotImplementedError

    def first_mismatch(self, size: int, pattern: Pattern, seed: int) -> int | None:
        raise NotImplementedError

    def checksum(self, size: int) -> int:
        raise NotImplementedError

    def free(self) -> None:
        if self._buffer is not None:
            with calling(self._release):
                self._buffer.release()
            self._buffer = None


def own(buffer: Buffer | None) -> OpenCLBuffer:
    return offering.own(buffer, OpenCLBuffer, "opencl")


def create(unit: OpenCLDevice, size: int, flags: int) -> cl.Buffer:
    refuse_larger(unit, size)
    with calling("clCreateBuffer", allocating=size):
        return cl.Buffer(unit.context, flags, size)


def refuse_larger(unit: OpenCLDevice, size: int) -> None:
    device = unit.facts.device
    if size > device.largest_buffer:
        raise AllocationError(
            "clCreateBuffer",
            f"{device.memory} allocates at most {device.largest_buffer} bytes at once, not {size}",
        )


class Words:
    """An array of 64-bit words in device memory. All words are 0 at first."""

    def __init__(self, unit: OpenCLDevice, count: int = 1) -> None:
        self._unit = unit
        self._host = np.zeros(count, dtype=np.uint64)
        self.buffer = create(unit, self._host.nbytes, cl.mem_flags.READ_WRITE)
        self.store(0)

    def total(self) -> int:
        """Returns the xor of all words. A single word is returned as it is."""
        with calling("clEnqueueReadBuffer"):
            cl.enqueue_copy(self._unit.queue, self._host, self.buffer)
        return int(np.bitwise_xor.reduce(self._host))

    def store(self, value: int) -> None:
        """Sets all words to this value."""
        self._host[:] = value
        with calling("clEnqueueWriteBuffer"):
            cl.enqueue_copy(self._unit.queue, self.buffer, self._host)


def partial_sums(unit: OpenCLDevice) -> Words:
    """Returns words for the checksum of a read. Each work-item has one word."""
    return Words(unit, unit.geometry[0][0])

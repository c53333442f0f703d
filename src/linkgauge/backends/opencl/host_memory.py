"""Host memory for copies to and from OpenCL devices. The native core fills and compares it."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from typing import Any

import numpy as np
import pyopencl as cl

from linkgauge._native import Kind
from linkgauge.backends.host_memory import ByThreads, NodeMemory, usable_cpus
from linkgauge.backends.protocol import Pattern
from linkgauge.model.documents.result import Placement
from linkgauge.model.hardware.machine import Node
from linkgauge.model.memory import Memory
from linkgauge.model.transfer import EngineKind

from .buffer import OpenCLBuffer, create, refuse_larger
from .runtime import OpenCLDevice, calling


def allocate_host(
    unit: OpenCLDevice, memory: Memory, size: int, kind: EngineKind, node: Node, alone: bool
) -> OpenCLHostBuffer:
    """Allocates host memory on a NUMA node, for engines of a kind (`ce` or `sm`). `alone` says that
    the machine has no other node.

    Raises Unsupported if pageable memory cannot be placed on the node."""
    cpus = node.cpus or usable_cpus()
    # The node of the driver's memory is certain only if there is just one.
    surely = node.index if alone else None
    if memory.kind == "pageable":
        return PageableBuffer(unit, memory, size, node.index, alone)
    if kind == "ce":
        return PinnedBuffer(unit, memory, size, surely, cpus)
    if unit.facts.fine_grained:
        return SharedBuffer(unit, memory, size, surely, cpus)
    return InPlaceBuffer(unit, memory, size, surely, cpus)


class OpenCLHostBuffer(ByThreads, OpenCLBuffer):
    """A buffer in host memory. `address` is valid as long as the buffer exists."""

    def for_copy(self, size: int) -> Any:
        with self.at() as address:
            return (ctypes.c_uint8 * size).from_address(address)


class PageableBuffer(NodeMemory, OpenCLHostBuffer):
    """Ordinary host memory that OpenCL does not know. Only the engine `ce` can use it."""

    def __init__(
        self, unit: OpenCLDevice, memory: Memory, size: int, node: int | None, alone: bool = True
    ) -> None:
        super().__init__(memory, size, node, alone, kind=Kind.PAGEABLE)
        self.unit = unit


class MadeBuffer(OpenCLHostBuffer):
    """Host memory that OpenCL allocates. `node` is its NUMA node, or None if unknown. The CPUs of
    the node touch the memory first."""

    def __init__(
        self, unit: OpenCLDevice, memory: Memory, size: int, node: int | None, cpus: Sequence[int]
    ) -> None:
        super().__init__(unit, memory, size)
        self._node, self.cpus = node, cpus
        self._allocate()
        self.fill(size, Pattern.WORDS, 0, False)

    def _allocate(self) -> None:
        raise NotImplementedError

    def placement(self) -> Placement:
        """Returns the memory's placement. OpenCL does not report whether the memory is locked."""
        return Placement(str(self.memory), self.size, node=self._node)


class DriverBuffer(MadeBuffer):
    """Host memory that the driver allocates as an OpenCL buffer."""

    def _allocate(self) -> None:
        flags = cl.mem_flags.READ_WRITE | cl.mem_flags.ALLOC_HOST_PTR
        self._buffer = create(self.unit, self.size, flags)


class PinnedBuffer(DriverBuffer):
    """Host memory that the driver pins, and that stays mapped. Only the engine `ce` can use it."""

    def _allocate(self) -> None:
        super()._allocate()
        self._mapping = ExitStack()
        self.address = self._mapping.enter_context(_mapped(self.unit, self._buffer, self.size))

    def free(self) -> None:
        self._mapping.close()
        super().free()


class InPlaceBuffer(DriverBuffer):
    """Host memory that a device uses in place, because it shares the host's memory. Only the engine
    `sm` can use it.

    The memory is mapped only while the host uses it, because kernels must not use mapped
    buffers."""

    def for_copy(self, size: int) -> Any:
        return OpenCLBuffer.for_copy(self, size)

    def for_kernel(self) -> Any:
        return self._buffer

    def at(self) -> AbstractContextManager[int]:
        return _mapped(self.unit, self._buffer, self.size)


class SharedBuffer(MadeBuffer):
    """Shared virtual memory. The host and kernels can use it at the same address at any time."""

    _release = "clSVMFree"

    def _allocate(self) -> None:
        refuse_larger(self.unit, self.size)
        fine = cl.svm_mem_flags.READ_WRITE | cl.svm_mem_flags.SVM_FINE_GRAIN_BUFFER
        with calling("clSVMAlloc", allocating=self.size):
            self._buffer = cl.SVMAllocation(self.unit.context, self.size, 0, fine)
        self.address = int(self._buffer.svm_ptr)

    def for_kernel(self) -> Any:
        return self._buffer


@contextmanager
def _mapped(unit: OpenCLDevice, buffer: cl.Buffer, size: int) -> Iterator[int]:
    """Maps the buffer and yields its address."""
    flags: Any = cl.map_flags.READ | cl.map_flags.WRITE
    with calling("clEnqueueMapBuffer", allocating=size):
        # pyopencl's stub omits the event that comes with the array.
        mapped: Any = cl.enqueue_map_buffer(
            unit.queue, buffer, flags, 0, (size,), np.dtype(np.uint8)
        )
    try:
        yield int(mapped[0].ctypes.data)
    finally:
        with calling("clEnqueueUnmapMemObject"):
            mapped[0].base.release(unit.queue)
            unit.queue.finish()

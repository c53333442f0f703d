"""How OpenCL's buffers are allocated in device memory and in host memory."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from typing import Any, Literal

import numpy as np
import pyopencl as cl

from linkgauge._native import Kind
from linkgauge.backends import offering
from linkgauge.backends.host_memory import ByThreads, NodeMemory, usable_cpus
from linkgauge.backends.protocol import Buffer, Pattern
from linkgauge.model.documents.result import Placement
from linkgauge.model.errors import AllocationError, BackendError
from linkgauge.model.hardware.machine import Node
from linkgauge.model.memory import Memory
from linkgauge.model.transfer import EngineKind

from .runtime import OpenCLDevice, calling

_MASK = (1 << 64) - 1
_PIECE = 1 << 31
"""The largest number of bytes in one comparison. An offset must fit into a 32-bit atomic."""


def allocate(
    unit: OpenCLDevice, memory: Memory, size: int, kind: EngineKind, node: Node | None, alone: bool
) -> OpenCLBuffer:
    """Allocates a buffer for engine `kind`. May raise AllocationError or Unsupported."""
    use: Use = "shared" if unit.facts.fine_grained else "in place"
    if memory.is_device:
        use = "device"
    elif memory.kind == "pageable":
        use = "pageable"
    elif kind == "ce":
        use = "pinned"
    return OpenCLBuffer(unit, memory, size, use, node, alone)


Use = Literal["device", "pageable", "pinned", "shared", "in place"]


class OpenCLBuffer(ByThreads):
    """A buffer. `use` is the way in which the device `unit` uses the buffer. `device`: in device
    memory, which kernels fill and compare. `pageable`: host memory unknown to OpenCL, for copy
    commands. `pinned`: host memory that the driver pins and keeps mapped, for copy commands.
    `shared`: shared virtual memory, at the same address for host and kernels. `in place`: host
    memory for kernels, mapped only while the host uses it."""

    def __init__(
        self,
        unit: OpenCLDevice,
        memory: Memory,
        size: int,
        use: Use,
        node: Node | None = None,
        alone: bool = True,
    ) -> None:
        self.unit, self.memory, self.size, self.use = unit, memory, size, use
        self.cpus = (node.cpus if node is not None else ()) or usable_cpus()
        self.warnings: tuple[str, ...] = ()
        # OpenCL does not report whether memory is locked, or on which of several nodes it is.
        self._placed = Placement(
            str(memory), size, node.index if node is not None and alone else None
        )
        self._object: Any = None
        """The buffer's OpenCL allocation, or None after release."""
        with ExitStack() as made:
            if use == "pageable":
                index = None if node is None else node.index
                pages = NodeMemory(memory, size, index, alone, kind=Kind.PAGEABLE)
                made.callback(pages.free)
                self.address, self.cpus = pages.address, pages.cpus
                self._placed, self.warnings = pages.placed, pages.warnings
            else:
                self._object = self._allocated(made)
                if use == "pinned":
                    self.address = made.enter_context(self._mapped())
                if use != "device":
                    self.fill(size, Pattern.WORDS, 0, False)
            self._made = made.pop_all()

    def _allocated(self, made: ExitStack) -> Any:
        if self.use == "shared":
            refuse_larger(self.unit, self.size)
            fine = cl.svm_mem_flags.READ_WRITE | cl.svm_mem_flags.SVM_FINE_GRAIN_BUFFER
            with calling("clSVMAlloc", allocating=self.size):
                shared = cl.SVMAllocation(self.unit.context, self.size, 0, fine)
            made.callback(_release, "clSVMFree", shared)
            self.address = int(shared.svm_ptr)
            return shared
        on_host = 0 if self.use == "device" else cl.mem_flags.ALLOC_HOST_PTR
        buffer = create(self.unit, self.size, cl.mem_flags.READ_WRITE | on_host)
        made.callback(_release, "clReleaseMemObject", buffer)
        if self.use == "device":
            # Creating a buffer only reserves memory; migrating it allocates, or fails here.
            with calling("clEnqueueMigrateMemObjects", allocating=self.size):
                undefined = cl.mem_migration_flags.CONTENT_UNDEFINED
                cl.enqueue_migrate_mem_objects(self.unit.queue, [buffer], undefined)
                self.unit.queue.finish()
        return buffer

    def placement(self) -> Placement:
        return self._placed

    def for_copy(self, size: int) -> Any:
        """Returns the buffer for copy commands. Raises BackendError if it is for kernels."""
        if self.use == "in place":
            raise BackendError("prepare", f"{self.memory} was allocated for sm, not for ce")
        return self._object if self.use == "device" else _bytes_at(self.address, size)

    def for_kernel(self) -> Any:
        """Returns the buffer for kernels. Raises BackendError if it is for copy commands."""
        if self.use in ("pageable", "pinned"):
            raise BackendError("prepare", f"{self.memory} was allocated for ce, not for sm")
        return self._object

    def at(self) -> AbstractContextManager[int]:
        return self._mapped() if self.use == "in place" else super().at()

    @contextmanager
    def _mapped(self) -> Iterator[int]:
        queue = self.unit.queue
        flags: Any = cl.map_flags.READ | cl.map_flags.WRITE
        with calling("clEnqueueMapBuffer", allocating=self.size):
            # pyopencl's stub omits the event that comes with the array.
            mapped: Any = cl.enqueue_map_buffer(
                queue, self._object, flags, 0, (self.size,), np.dtype(np.uint8)
            )
        try:
            yield int(mapped[0].ctypes.data)
        finally:
            with calling("clEnqueueUnmapMemObject"):
                mapped[0].base.release(queue)
                queue.finish()

    def fill(self, size: int, pattern: Pattern, seed: int, inverted: bool) -> None:
        if self.use != "device":
            super().fill(size, pattern, seed, inverted)
        elif self.unit.no_kernels:
            mirror = self._mirror(size)
            mirror.fill(size, pattern, seed, inverted)
            self._copy(self._object, _bytes_at(mirror.address, size))
        else:
            flip = np.uint64(_MASK if inverted else 0)
            what = (np.uint64(size), np.uint64(seed), np.int32(pattern))
            self.unit.run("fill", self._object, *what, flip)

    def first_mismatch(self, size: int, pattern: Pattern, seed: int) -> int | None:
        if self.use != "device":
            return super().first_mismatch(size, pattern, seed)
        if self.unit.no_kernels:
            return self._fetched(size).first_mismatch(size, pattern, seed)
        none = np.iinfo(np.uint32).max
        what = (np.uint64(size), np.uint64(seed), np.int32(pattern))
        for base in range(0, size, _PIECE):
            found = np.full(1, none, dtype=np.uint32)
            bad = create(self.unit, found.nbytes, cl.mem_flags.READ_WRITE)
            self._copy(bad, found)
            words = np.uint64(base // 8), np.uint64(-(-min(_PIECE, size - base) // 8))
            self.unit.run("compare", self._object, *what, *words, bad)
            self._copy(found, bad)
            if found[0] != none:
                return base + int(found[0])
        return None

    def checksum(self, size: int) -> int:
        if self.use != "device":
            return super().checksum(size)
        if self.unit.no_kernels:
            return self._fetched(size).checksum(size)
        sums = partial_sums(self.unit)
        self.unit.run("pure_read", self._object, sums.buffer, np.uint64(size))
        return sums.total()

    def _copy(self, destination: Any, source: Any) -> None:
        with calling("clEnqueueCopyBuffer"):
            cl.enqueue_copy(self.unit.queue, destination, source, is_blocking=True)

    def _fetched(self, size: int) -> NodeMemory:
        mirror = self._mirror(size)
        self._copy(_bytes_at(mirror.address, size), self._object)
        return mirror

    def _mirror(self, size: int) -> NodeMemory:
        if self.unit.spare is None or self.unit.spare.size < size:
            self.unit.free_spare()
            self.unit.spare = NodeMemory(self.memory, size, None, kind=Kind.PAGEABLE)
        return self.unit.spare

    def free(self) -> None:
        self._object = None
        self._made.close()


def own(buffer: Buffer | None) -> OpenCLBuffer:
    return offering.own(buffer, OpenCLBuffer, "opencl")


def _bytes_at(address: int, size: int) -> Any:
    return (ctypes.c_uint8 * size).from_address(address)


def _release(call: str, thing: Any) -> None:
    with calling(call):
        thing.release()


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
    """64-bit words in a device's memory for a kernel's results. They start at 0."""

    def __init__(self, unit: OpenCLDevice, count: int = 1) -> None:
        self._unit = unit
        self._host = np.zeros(count, dtype=np.uint64)
        self.buffer = create(unit, self._host.nbytes, cl.mem_flags.READ_WRITE)
        self.store(0)

    def total(self) -> int:
        """Returns the xor of all words; for a single word, the word itself."""
        with calling("clEnqueueReadBuffer"):
            cl.enqueue_copy(self._unit.queue, self._host, self.buffer)
        return int(np.bitwise_xor.reduce(self._host))

    def store(self, value: int) -> None:
        self._host[:] = value
        with calling("clEnqueueWriteBuffer"):
            cl.enqueue_copy(self._unit.queue, self.buffer, self._host)


def partial_sums(unit: OpenCLDevice) -> Words:
    return Words(unit, unit.geometry[0][0])

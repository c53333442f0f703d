"""Memory for CUDA: of a device, and of the host in every kind that CUDA can use."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from typing import TypeVar

import msgspec

from linkgauge.backends import native
from linkgauge.backends.host_memory import NodeMemory, shift_within, usable_cpus
from linkgauge.backends.protocol import Buffer, Pattern
from linkgauge.model.documents.result import Placement
from linkgauge.model.errors import AllocationError, BackendError, Unsupported
from linkgauge.model.hardware.machine import Node
from linkgauge.model.memory import SPREAD, Memory
from linkgauge.model.units import approximate_size

from .device import CudaDevice

HOST_KINDS = (*(kind for kind in native.KINDS if kind not in SPREAD), "mapped", "wc", "managed")
MANAGED_SHARE = 4
"""All managed memory of a device may take at most 1/MANAGED_SHARE of its free memory: a driver that
must evict while kernels spin can hang the device."""


class Fabric(msgspec.Struct, frozen=True):
    """The fabric handle of a buffer's allocation, for other machines. Address and size (in bytes)
    are those of the allocation."""

    handle: bytes
    start: int
    bytes: int


class CudaBuffer(msgspec.Struct, eq=False):
    """Memory that CUDA can use. `address` is the first byte; host and devices use the same address
    (unified addressing). `home` is the device that allocated, fills and checks the memory."""

    memory: Memory
    size: int
    address: int
    home: CudaDevice
    release: Callable[[], object] | None
    placed: Placement | None = None
    is_exported: bool = True
    """Whether other processes may open the buffer."""
    fabric: Fabric | None = None
    """The handle with which processes on other machines may open the buffer, too."""

    @property
    def warnings(self) -> tuple[str, ...]:
        return tuple(native.misplaced(self.memory, self.placement()))

    @property
    def host_only(self) -> bool:
        """Whether only the host and copy engines (with the driver's help) can reach the memory."""
        return self.memory.kind == "pageable"

    def placement(self) -> Placement:
        return self.placed or Placement(memory=str(self.memory), bytes=self.size)

    def free(self) -> None:
        """Frees the memory; idempotent."""
        release, self.release = self.release, None
        if release is not None:
            self.home.enter()
            release()


def ours(buffer: Buffer | None) -> CudaBuffer:
    """Returns the buffer as a CudaBuffer. Any other type of buffer is a bug."""
    if not isinstance(buffer, CudaBuffer):
        raise TypeError(f"not a buffer of the cuda backend: {buffer!r}")
    return buffer


def address_in(buffer: Buffer | None) -> int:
    """Returns the address of a buffer of this backend."""
    return ours(buffer).address


_Word = TypeVar("_Word", ctypes.c_uint32, ctypes.c_uint64)


def pinned_words(device: CudaDevice, kind: type[_Word], count: int) -> ctypes.Array[_Word]:
    """Allocates words of host memory that the host and all devices see at the same address. The
    contents are undefined. The caller frees the words with cuMemFreeHost."""
    enums = device.driver.enums
    flags = enums.CU_MEMHOSTALLOC_PORTABLE | enums.CU_MEMHOSTALLOC_DEVICEMAP
    size = count * ctypes.sizeof(kind)
    return (kind * count).from_address(int(device.call("cuMemHostAlloc", size, flags)))


def allocate(
    memory: Memory, size: int, home: CudaDevice, node: Node | None, alone: bool
) -> CudaBuffer:
    """Allocates `size` bytes of `memory` for use by `home`. `node` describes the node of host
    memory; `alone` says that there is no other node. The CPUs of the node touch host memory first.

    Raises AllocationError if memory is short, and Unsupported if the kind of memory is unknown
    here."""
    home.enter()
    if memory.is_device:
        shift = shift_within(size)
        start = int(home.driver.call("cuMemAlloc", size + shift, about=_about(memory, size)))
        release = partial(home.driver.call, "cuMemFree", start)
        return CudaBuffer(memory, size, start + shift, home, release)
    if node is None:
        raise Unsupported(f"no node {memory.place} on this machine")
    if memory.kind in native.KINDS:
        return _native_memory(memory, size, home, node, alone)
    if memory.kind == "managed":
        return _managed(memory, size, home, node, alone)
    return _driver_memory(memory, size, home, node)


def _native_memory(
    memory: Memory, size: int, home: CudaDevice, node: Node, alone: bool
) -> CudaBuffer:
    """Allocates memory by the native core. The native core binds the memory to its node, touches it
    with all CPUs of the node, and requests huge pages. The driver then pins the memory, unless the
    kind is pageable. Pinning existing pages takes a fraction of the time of an allocation by the
    driver."""
    held = NodeMemory(memory, size, node.index, alone, node.cpus)
    pinned = memory.kind != "pageable"
    if pinned:
        try:
            enums = home.driver.enums
            flags = enums.CU_MEMHOSTREGISTER_PORTABLE | enums.CU_MEMHOSTREGISTER_DEVICEMAP
            about = _about(memory, size)
            home.driver.call("cuMemHostRegister", held.address, size, flags, about=about)
        except BackendError:
            held.free()
            raise
        held.placed = msgspec.structs.replace(held.placed, locked=True)

    def release() -> None:
        try:
            if pinned:
                home.driver.call("cuMemHostUnregister", held.address)
        finally:
            held.free()

    return CudaBuffer(memory, size, held.address, home, release, held.placed)


def _driver_memory(memory: Memory, size: int, home: CudaDevice, node: Node) -> CudaBuffer:
    """Allocates pinned memory by the driver: `mapped` (zero copy) or `wc` (write-combined). The
    memory cannot be bound to a node; the driver takes pages near the calling CPU."""
    enums = home.driver.enums
    flags = {
        "mapped": enums.CU_MEMHOSTALLOC_DEVICEMAP,
        "wc": enums.CU_MEMHOSTALLOC_DEVICEMAP | enums.CU_MEMHOSTALLOC_WRITECOMBINED,
    }.get(memory.kind)
    if flags is None:
        raise Unsupported(f"CUDA has no {memory.kind} host memory")
    flags |= enums.CU_MEMHOSTALLOC_PORTABLE
    with _on_cpus(node.cpus):
        about = _about(memory, size)
        address = int(home.driver.call("cuMemHostAlloc", size, flags, about=about))
    placed = Placement(str(memory), size, native.node_of(address, size), locked=True)
    release = partial(home.driver.call, "cuMemFreeHost", address)
    return CudaBuffer(memory, size, address, home, release, placed)


def _managed(memory: Memory, size: int, home: CudaDevice, node: Node, alone: bool) -> CudaBuffer:
    """Allocates managed memory that prefers its node and is mapped into the device. Copies access
    the memory in place, and no page migrates while the clock runs."""
    _check_managed(size, home)
    attach = home.driver.enums.CUmemAttach_flags.CU_MEM_ATTACH_GLOBAL
    address = int(home.driver.call("cuMemAllocManaged", size, attach, about=_about(memory, size)))
    home.managed += size

    def release() -> None:
        home.managed -= size
        home.driver.call("cuMemFree", address)

    cpus = node.cpus or usable_cpus()
    try:
        _advise(home, address, size, memory, alone)
        # The host touches the pages first: otherwise they might be placed on a device.
        native.fill(address, size, Pattern.CONSTANT, 0, inverted=False, cpus=cpus)
    except BackendError:
        release()
        raise
    placed = Placement(str(memory), size, native.node_of(address, size))
    return CudaBuffer(memory, size, address, home, release, placed)


def _check_managed(size: int, home: CudaDevice) -> None:
    """Raises Unsupported if the device can never have `size` bytes of managed memory, and
    AllocationError if the device cannot have so many bytes now."""
    if not home.attribute("CONCURRENT_MANAGED_ACCESS"):
        raise Unsupported(f"cuda:{home.index} cannot use managed memory while the host does")
    free, _ = home.driver.call("cuMemGetInfo")
    most = int(free) // MANAGED_SHARE
    share = f"more than 1/{MANAGED_SHARE} of what cuda:{home.index} has free"
    if size > most:
        what = f"{approximate_size(size)} of managed memory"
        raise Unsupported(f"{what} is {share}: give a smaller size")
    if home.managed + size > most:
        what = f"allocate {approximate_size(size)} of managed memory"
        raise AllocationError(what, f"with {approximate_size(home.managed)} in use it is {share}")


def _advise(home: CudaDevice, address: int, size: int, memory: Memory, alone: bool) -> None:
    """Advises the driver to keep the pages on the memory's node, mapped into the device."""
    enums = home.driver.enums
    places, advice = enums.CUmemLocationType, enums.CUmem_advise
    host = places.CU_MEM_LOCATION_TYPE_HOST if alone else places.CU_MEM_LOCATION_TYPE_HOST_NUMA
    device = places.CU_MEM_LOCATION_TYPE_DEVICE
    # CUDA 12 has the variant that takes a location under a second name.
    name = "cuMemAdvise_v2" if hasattr(enums, "cuMemAdvise_v2") else "cuMemAdvise"
    for wish, kind, number in (
        (advice.CU_MEM_ADVISE_SET_PREFERRED_LOCATION, host, memory.index),
        (advice.CU_MEM_ADVISE_SET_ACCESSED_BY, device, home.index),
    ):
        location = enums.CUmemLocation()
        location.type, location.id = kind, number
        home.driver.call(name, address, size, wish, location, about=_about(memory, size))


def _about(memory: Memory, size: int) -> str:
    return f"{approximate_size(size)} of {memory}"


@contextmanager
def _on_cpus(cpus: Sequence[int]) -> Iterator[None]:
    """Runs the body of the `with` statement on these CPUs, so that pages first touched there lie on
    the CPUs' node."""
    before = os.sched_getaffinity(0)
    with suppress(OSError):
        if cpus:
            os.sched_setaffinity(0, cpus)
    try:
        yield
    finally:
        with suppress(OSError):
            os.sched_setaffinity(0, before)

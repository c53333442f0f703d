"""Memory for CUDA: of a device, and of the host in each way that CUDA can use it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

import msgspec

from linkgauge._native import Kind
from linkgauge.backends import native
from linkgauge.model.errors import BackendError, Unsupported
from linkgauge.model.machine import Node
from linkgauge.model.result import Placement
from linkgauge.model.transfer import STAGING, Memory
from linkgauge.model.units import approximate_size

from .device import CudaDevice

_KINDS = {
    "": Kind.PINNED,
    "pageable": Kind.PAGEABLE,
    "huge": Kind.HUGE,
    STAGING: Kind.PINNED,
}
"""What the native core allocates; the rest is the driver's own."""
HOST_KINDS = (*_KINDS, "mapped", "wc", "managed")
MANAGED_SHARE = 4
"""Managed memory may take no more than 1/4 of what the device has free: a driver that must evict
while kernels spin can hang the device."""


class CudaBuffer:
    """Memory that CUDA can use. `address` is its first byte, for the host and for every device
    (unified addressing); `home` is the device that allocated it, fills it and checks it."""

    def __init__(
        self,
        memory: Memory,
        size: int,
        address: int,
        home: CudaDevice,
        release: Callable[[], None],
        placement: Placement | None = None,
    ) -> None:
        self.memory = memory
        self.size = size
        self.address = address
        self.home = home
        self._release: Callable[[], None] | None = release
        self._placement = placement or Placement(memory=str(memory), bytes=size)
        self.warnings = tuple(native.misplaced(memory, self._placement))

    @property
    def host_only(self) -> bool:
        """Whether only the host, and copy engines with the driver's help, can reach it."""
        return self.memory.kind == "pageable"

    def placement(self) -> Placement:
        return self._placement

    def free(self) -> None:
        """Gives the memory back; idempotent."""
        release, self._release = self._release, None
        if release is not None:
            self.home.enter()
            release()


def allocate(
    memory: Memory, size: int, home: CudaDevice, node: Node | None, alone: bool, affinity: bool
) -> CudaBuffer:
    """`size` bytes of `memory`, for the use of `home`; `node` describes a host memory's node,
    `alone` says that there is no other.

    Raises AllocationError where it cannot be had and Unsupported where its kind is unknown here.
    """
    home.enter()
    if memory.is_device:
        address = int(home.driver.call("cuMemAlloc", size, about=_about(memory, size)))
        return CudaBuffer(memory, size, address, home, _release(home, "cuMemFree", address))
    if node is None:
        raise Unsupported(f"there is no node {memory.place} on this machine")
    if memory.kind in _KINDS:
        return _native_memory(memory, size, home, node, alone)
    if memory.kind == "managed":
        return _managed(memory, size, home)
    with _on_cpus(node.cpus if affinity else ()):
        return _driver_memory(memory, size, home)


def _native_memory(
    memory: Memory, size: int, home: CudaDevice, node: Node, alone: bool
) -> CudaBuffer:
    """Memory of the native core, which binds it to its node, touches it from there with every CPU
    and asks for huge pages; then pinned by the driver, unless it is to stay pageable. Pinning
    pages that exist takes a fraction of the time in which the driver allocates them itself."""
    kind = _KINDS[memory.kind]
    cpus = node.cpus or sorted(os.sched_getaffinity(0))
    pages, placement = native.allocate(memory, size, kind, node.index, alone, cpus)
    pinned = memory.kind != "pageable"
    if pinned:
        try:
            _register(home, pages.address, size, _about(memory, size))
        except BackendError:
            pages.close()
            raise
        placement = msgspec.structs.replace(placement, locked=True)

    def release() -> None:
        if pinned:
            home.driver.call("cuMemHostUnregister", pages.address)
        pages.close()

    return CudaBuffer(memory, size, pages.address, home, release, placement)


def _register(home: CudaDevice, address: int, size: int, about: str) -> None:
    enums = home.driver.enums
    flags = enums.CU_MEMHOSTREGISTER_PORTABLE | enums.CU_MEMHOSTREGISTER_DEVICEMAP
    home.driver.call("cuMemHostRegister", address, size, flags, about=about)


def _driver_memory(memory: Memory, size: int, home: CudaDevice) -> CudaBuffer:
    """Pinned memory of the driver's own: `mapped` (zero copy), `wc` (write-combined)."""
    enums = home.driver.enums
    flags = {
        "mapped": enums.CU_MEMHOSTALLOC_DEVICEMAP,
        "wc": enums.CU_MEMHOSTALLOC_DEVICEMAP | enums.CU_MEMHOSTALLOC_WRITECOMBINED,
    }.get(memory.kind)
    if flags is None:
        raise Unsupported(f"CUDA has no {memory.kind} host memory")
    address = home.driver.call(
        "cuMemHostAlloc", size, flags | enums.CU_MEMHOSTALLOC_PORTABLE, about=_about(memory, size)
    )
    placed = Placement(memory=str(memory), bytes=size, locked=True)
    free = _release(home, "cuMemFreeHost", int(address))
    return CudaBuffer(memory, size, int(address), home, free, placed)


def _managed(memory: Memory, size: int, home: CudaDevice) -> CudaBuffer:
    """Managed memory that prefers the host and is mapped into the device: copies read and write
    it where it lies, nothing migrates while the clock runs."""
    free, _ = home.driver.call("cuMemGetInfo")
    if size > int(free) // MANAGED_SHARE:
        raise Unsupported(
            f"{approximate_size(size)} of managed memory is more than 1/{MANAGED_SHARE} of what "
            f"cuda:{home.index} has free: give a smaller size"
        )
    if not home.attribute("CONCURRENT_MANAGED_ACCESS"):
        raise Unsupported(f"cuda:{home.index} cannot use managed memory while the host does")
    enums = home.driver.enums
    attach = enums.CUmemAttach_flags.CU_MEM_ATTACH_GLOBAL
    address = int(home.driver.call("cuMemAllocManaged", size, attach, about=_about(memory, size)))
    buffer = CudaBuffer(memory, size, address, home, _release(home, "cuMemFree", address))
    places, advice = enums.CUmemLocationType, enums.CUmem_advise
    try:
        _advise(
            buffer,
            advice.CU_MEM_ADVISE_SET_PREFERRED_LOCATION,
            (places.CU_MEM_LOCATION_TYPE_HOST, 0),
        )
        _advise(
            buffer,
            advice.CU_MEM_ADVISE_SET_ACCESSED_BY,
            (places.CU_MEM_LOCATION_TYPE_DEVICE, home.index),
        )
    except BackendError:
        buffer.free()
        raise
    return buffer


def _advise(buffer: CudaBuffer, advice: Any, place: tuple[Any, int]) -> None:
    enums = buffer.home.driver.enums
    location = enums.CUmemLocation()
    location.type, location.id = place
    # CUDA 12 has the form that takes a location under a second name.
    name = "cuMemAdvise_v2" if hasattr(enums, "cuMemAdvise_v2") else "cuMemAdvise"
    buffer.home.driver.call(name, buffer.address, buffer.size, advice, location)


def _release(home: CudaDevice, name: str, address: int) -> Callable[[], None]:
    def release() -> None:
        home.driver.call(name, address)

    return release


def _about(memory: Memory, size: int) -> str:
    return f"{approximate_size(size)} of {memory}"


@contextmanager
def _on_cpus(cpus: Sequence[int]) -> Iterator[None]:
    """Runs on these CPUs, so that pages first touched meanwhile lie on their node."""
    before = os.sched_getaffinity(0)
    with suppress(OSError):
        if cpus:
            os.sched_setaffinity(0, cpus)
    try:
        yield
    finally:
        with suppress(OSError):
            os.sched_setaffinity(0, before)

"""How memory is allocated for CUDA, on a device, or as one of the kinds of host memory."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from functools import partial

import msgspec

from linkgauge.backends import native
from linkgauge.backends.host_memory import NodeMemory, shift_within, usable_cpus
from linkgauge.backends.offering import own
from linkgauge.backends.protocol import Buffer, Copy, Pattern
from linkgauge.model.documents.result import Placement
from linkgauge.model.errors import AllocationError, Unsupported
from linkgauge.model.hardware.machine import Node
from linkgauge.model.memory import SPREAD, Memory
from linkgauge.model.units import approximate_size

from .device import CudaDevice, read_word, run
from .launches import Span, pattern_launch, read_launch

_ALL_BITS = (1 << 64) - 1
HOST_KINDS = (*(kind for kind in native.KINDS if kind not in SPREAD), "mapped", "wc", "managed")
MANAGED_SHARE = 4
"""Managed memory may take at most 1/MANAGED_SHARE of a device's free memory. If the driver must
evict pages while kernels wait, the device can hang."""


class Fabric(msgspec.Struct, frozen=True):
    handle: bytes
    start: int
    bytes: int


class CudaBuffer(msgspec.Struct, eq=False):
    """A buffer at `address` that belongs to the device `home`. `release` frees it."""

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
        return self.memory.kind == "pageable"

    def fill(self, size: int, pattern: Pattern, seed: int, inverted: bool) -> None:
        if self.host_only:
            native.fill(self.address, size, pattern, seed, inverted, usable_cpus())
        else:
            self._by_kernel("fill", size, pattern, seed, _ALL_BITS if inverted else 0)

    def first_mismatch(self, size: int, pattern: Pattern, seed: int) -> int | None:
        if self.host_only:
            return native.first_mismatch(self.address, size, pattern, seed, usable_cpus())
        word = self.home.result(0xFF)
        self._by_kernel("compare", size, pattern, seed, word)
        found = read_word(self.home, word)
        return None if found == _ALL_BITS else found

    def checksum(self, size: int) -> int:
        if self.host_only:
            return native.checksum(self.address, size, usable_cpus())
        word = self.home.result(0)
        run(self.home, read_launch(self.home, self.address, size, word))
        return read_word(self.home, word)

    def _by_kernel(self, name: str, size: int, pattern: Pattern, seed: int, word: int) -> None:
        run(self.home, pattern_launch(self.home, name, self.address, size, pattern, seed, word))

    def placement(self) -> Placement:
        return self.placed or Placement(memory=str(self.memory), bytes=self.size)

    def free(self) -> None:
        release, self.release = self.release, None
        if release is not None:
            self.home.enter()
            release()


def ours(buffer: Buffer | None) -> CudaBuffer:
    return own(buffer, CudaBuffer, "cuda")


def address_in(buffer: Buffer | None) -> int:
    return ours(buffer).address


def span_of(copy: Copy) -> Span:
    return Span(address_in(copy.destination), address_in(copy.source), copy.size)


def allocate(
    memory: Memory, size: int, home: CudaDevice, node: Node | None, alone: bool
) -> CudaBuffer:
    """Allocates a buffer. Raises AllocationError if memory is short, or Unsupported."""
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
    # The native core allocates and the driver only pins. The driver alone would be much slower.
    held = NodeMemory(memory, size, node.index, alone, node.cpus)
    with ExitStack() as made:
        made.callback(held.free)
        if memory.kind != "pageable":
            enums = home.driver.enums
            flags = enums.CU_MEMHOSTREGISTER_PORTABLE | enums.CU_MEMHOSTREGISTER_DEVICEMAP
            about = _about(memory, size)
            home.driver.call("cuMemHostRegister", held.address, size, flags, about=about)
            made.callback(home.driver.call, "cuMemHostUnregister", held.address)
            held.placed = msgspec.structs.replace(held.placed, locked=True)
        release = made.pop_all().close
    return CudaBuffer(memory, size, held.address, home, release, held.placed)


def _driver_memory(memory: Memory, size: int, home: CudaDevice, node: Node) -> CudaBuffer:
    enums = home.driver.enums
    if memory.kind not in ("mapped", "wc"):
        raise Unsupported(f"CUDA has no {memory.kind} host memory")
    flags = enums.CU_MEMHOSTALLOC_DEVICEMAP | enums.CU_MEMHOSTALLOC_PORTABLE
    if memory.kind == "wc":
        flags |= enums.CU_MEMHOSTALLOC_WRITECOMBINED
    with _on_cpus(node.cpus):
        about = _about(memory, size)
        address = int(home.driver.call("cuMemHostAlloc", size, flags, about=about))
    placed = Placement(str(memory), size, native.node_of(address, size), locked=True)
    release = partial(home.driver.call, "cuMemFreeHost", address)
    return CudaBuffer(memory, size, address, home, release, placed)


def _managed(memory: Memory, size: int, home: CudaDevice, node: Node, alone: bool) -> CudaBuffer:
    # Its pages stay on their NUMA node, so that none moves while a copy is timed.
    _check_managed(size, home)
    attach = home.driver.enums.CUmemAttach_flags.CU_MEM_ATTACH_GLOBAL
    address = int(home.driver.call("cuMemAllocManaged", size, attach, about=_about(memory, size)))
    home.managed += size
    cpus = node.cpus or usable_cpus()
    with ExitStack() as made:
        made.callback(home.driver.call, "cuMemFree", address)
        made.callback(lambda: setattr(home, "managed", home.managed - size))
        _advise(home, address, size, memory, alone)
        # The host touches the pages first: otherwise they might be placed on a device.
        native.fill(address, size, Pattern.CONSTANT, 0, inverted=False, cpus=cpus)
        release = made.pop_all().close
    placed = Placement(str(memory), size, native.node_of(address, size))
    return CudaBuffer(memory, size, address, home, release, placed)


def _check_managed(size: int, home: CudaDevice) -> None:
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
    before = os.sched_getaffinity(0)
    with suppress(OSError):
        if cpus:
            os.sched_setaffinity(0, cpus)
    try:
        yield
    finally:
        with suppress(OSError):
            os.sched_setaffinity(0, before)

"""How device memory is shared with other processes, by CUDA IPC or fabric handles."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from typing import Any

import msgspec

from linkgauge.backends.host_memory import shift_within
from linkgauge.model.errors import (
    AllocationError,
    BackendError,
    DeviceLost,
    NoPeerAccess,
    Unsupported,
)
from linkgauge.model.memory import Memory
from linkgauge.model.units import approximate_size

from .device import CudaDevice
from .memory import CudaBuffer, Fabric

Release = Callable[[], object]
_NOT_HERE = ("NOT_SUPPORTED", "PEER_ACCESS_UNSUPPORTED", "MAP_FAILED", "INVALID_DEVICE")
"""Parts of the driver's error names if two devices or containers cannot share memory."""


class OutOfReach(Unsupported):
    """Raised if a device cannot access memory on another machine."""


class Handle(msgspec.Struct, frozen=True):
    """What another process needs to open a buffer on `machine`. `allocation` is the driver's handle
    of memory, `offset` the byte in it at which the buffer begins. `mapped` is the bytes to map for
    a fabric handle, 0 for CUDA IPC. `domain` is the device's NVLink domain, or None."""

    machine: str
    allocation: bytes
    offset: int
    mapped: int = 0
    domain: str | None = None


def export(buffer: CudaBuffer, machine: str, domain: str | None = None) -> bytes:
    """Returns an encoded `Handle`, with which processes on this machine can open a buffer. A buffer
    in fabric memory can also be opened on other machines of the NVLink `domain`."""
    device, own = buffer.home, buffer.fabric
    if own is not None:
        offset = buffer.address - own.start
        return msgspec.msgpack.encode(Handle(machine, own.handle, offset, own.bytes, domain))
    base, _ = device.call("cuMemGetAddressRange", buffer.address)
    handle = device.call("cuIpcGetMemHandle", int(base), about=str(buffer.memory))
    offset = buffer.address - int(base)
    return msgspec.msgpack.encode(Handle(machine, bytes(handle.reserved), offset))


def open_handle(
    exported: bytes,
    machine: str,
    memory: Memory,
    size: int,
    device: CudaDevice,
    domain: str | None = None,
) -> CudaBuffer:
    """Opens another process's buffer. `machine` and `domain` name this process's machine and NVLink
    domain. Raises NoPeerAccess or OutOfReach if the device cannot access the memory."""
    handle, own = msgspec.msgpack.decode(exported, type=Handle), None
    where = f"{memory} is on {handle.machine}, cuda:{device.index} on {machine}"
    if handle.mapped:
        if None not in (handle.domain, domain) and handle.domain != domain:
            why = f"NVLink does not join them ({handle.domain} and {domain})"
            raise OutOfReach(f"{where}: {why}")
        try:
            base, release = _mapped(device, handle, str(memory))
        except DeviceLost:
            raise
        except BackendError as error:
            raise OutOfReach(f"{where}: it does not open the fabric handle: {error}") from error
        own = Fabric(handle.allocation, base, handle.mapped)
    else:
        if handle.machine != machine:
            raise OutOfReach(f"{where}: CUDA IPC does not leave a machine")
        base, release = _opened(device, handle, memory)
    return CudaBuffer(memory, size, base + handle.offset, device, release, fabric=own)


def _opened(device: CudaDevice, handle: Handle, memory: Memory) -> tuple[int, Release]:
    enums = device.driver.enums
    native = enums.CUipcMemHandle()
    native.reserved = handle.allocation
    flags = enums.CUipcMem_flags.CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS
    try:
        base = int(device.call("cuIpcOpenMemHandle", native, flags, about=str(memory)))
    except BackendError as error:
        if any(name in error.detail for name in _NOT_HERE):
            raise NoPeerAccess(f"cuda:{device.index} does not open {memory}: {error}") from error
        raise
    return base, partial(device.driver.call, "cuIpcCloseMemHandle", base)


def _mapped(device: CudaDevice, handle: Handle, about: str) -> tuple[int, Release]:
    with ExitStack() as undoing:
        device.enter()
        kind = device.driver.enums.CUmemAllocationHandleType.CU_MEM_HANDLE_TYPE_FABRIC
        name = "cuMemImportFromShareableHandle"
        theirs = device.driver.call(name, handle.allocation, kind, about=about)
        undoing.callback(device.driver.call, "cuMemRelease", theirs)
        start = _map(device, theirs, handle.mapped, undoing, about)
        return start, undoing.pop_all().close


def allocate_fabric(memory: Memory, size: int, home: CudaDevice) -> CudaBuffer:
    """Allocates memory that other machines can open. Raises Unsupported or AllocationError."""
    kind = _handle_type(home)
    shift = shift_within(size)
    about = f"{approximate_size(size)} of {memory}, for other machines"
    with ExitStack() as undoing:
        try:
            properties = _properties(home, kind)
            whole = _whole(home, size + shift, properties)
            home.enter()
            made = home.driver.call("cuMemCreate", whole, properties, 0, about=about)
            undoing.callback(home.driver.call, "cuMemRelease", made)
            exported = home.driver.call("cuMemExportToShareableHandle", made, kind, 0, about=about)
            start = _map(home, made, whole, undoing, about)
        except (AllocationError, DeviceLost):
            raise
        except BackendError as error:  # without an IMEX channel it is not permitted
            raise Unsupported(f"cuda:{home.index} has no fabric handles: {error}") from error
        release = undoing.pop_all().close
    own = Fabric(bytes(exported.data), start, whole)
    return CudaBuffer(memory, size, start + shift, home, release, fabric=own)


def _handle_type(device: CudaDevice) -> Any:
    enums = device.driver.enums
    try:
        known = device.attribute("HANDLE_TYPE_FABRIC_SUPPORTED")
        kind = enums.CUmemAllocationHandleType.CU_MEM_HANDLE_TYPE_FABRIC
    except (AttributeError, BackendError):  # bindings, or a driver, before CUDA 12.3
        known, kind = 0, None
    if not known:
        raise Unsupported(f"cuda:{device.index} has no fabric handles")
    return kind


def _properties(device: CudaDevice, kind: Any) -> Any:
    enums = device.driver.enums
    properties = enums.CUmemAllocationProp()
    properties.type = enums.CUmemAllocationType.CU_MEM_ALLOCATION_TYPE_PINNED
    properties.location = _location(device)
    properties.requestedHandleTypes = kind
    return properties


def _location(device: CudaDevice) -> Any:
    enums = device.driver.enums
    location = enums.CUmemLocation()
    location.type = enums.CUmemLocationType.CU_MEM_LOCATION_TYPE_DEVICE
    location.id = device.index
    return location


def _whole(device: CudaDevice, size: int, properties: Any) -> int:
    """Returns `size` in bytes, rounded up to the driver's allocation granularity."""
    least = device.driver.enums.CUmemAllocationGranularity_flags.CU_MEM_ALLOC_GRANULARITY_MINIMUM
    step = int(device.call("cuMemGetAllocationGranularity", properties, least))
    return -(-size // step) * step


def _map(device: CudaDevice, allocation: Any, size: int, undoing: ExitStack, about: str) -> int:
    driver = device.driver
    start = int(driver.call("cuMemAddressReserve", size, 0, 0, 0, about=about))
    undoing.callback(driver.call, "cuMemAddressFree", start, size)
    driver.call("cuMemMap", start, size, 0, allocation, 0, about=about)
    undoing.callback(driver.call, "cuMemUnmap", start, size)
    access = driver.enums.CUmemAccessDesc()
    access.location = _location(device)
    access.flags = driver.enums.CUmemAccess_flags.CU_MEM_ACCESS_FLAGS_PROT_READWRITE
    driver.call("cuMemSetAccess", start, size, [access], 1, about=about)
    return start

"""Device memory that other processes can open. CUDA IPC serves processes on the same machine.
Fabric handles serve processes on other machines of the same NVLink domain."""

from __future__ import annotations

from functools import partial

import msgspec

from linkgauge.model.errors import BackendError, DeviceLost, NoPeerAccess, Unsupported
from linkgauge.model.memory import Memory

from . import fabric
from .device import CudaDevice
from .memory import CudaBuffer, Fabric

_NOT_HERE = ("NOT_SUPPORTED", "PEER_ACCESS_UNSUPPORTED", "MAP_FAILED", "INVALID_DEVICE")
"""Parts of the driver's error names if two devices or containers cannot share memory."""


class OutOfReach(Unsupported):
    """The device cannot reach the memory of another machine."""


class Handle(msgspec.Struct, frozen=True):
    """The data with which another process can open a buffer.

    `machine` is the name of the buffer's machine.
    `allocation` is the driver's handle of the allocation that contains the buffer.
    `offset` is the buffer's place in the allocation, in bytes.
    `mapped` is the number of bytes to map for a fabric handle, else 0.
    `domain` is the NVLink domain of the device (null: unknown)."""

    machine: str
    allocation: bytes
    offset: int
    mapped: int = 0
    domain: str | None = None


def export(buffer: CudaBuffer, machine: str, domain: str | None = None) -> bytes:
    """Returns the buffer's handle as bytes, for processes on the same machine. With fabric memory,
    the handle is for all machines of the NVLink domain. Raises BackendError."""
    device = buffer.home
    if buffer.fabric is not None:
        own = buffer.fabric
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
    """Opens a buffer of another process, for use by `device`. `machine` and `domain` are those of
    this process. Raises OutOfReach if the buffer is on another machine and cannot be reached, and
    NoPeerAccess if it is on this machine."""
    handle = msgspec.msgpack.decode(exported, type=Handle)
    own = None
    if handle.mapped:
        base, release = _mapped(handle, machine, memory, device, domain)
        own = Fabric(handle.allocation, base, handle.mapped)
    else:
        base, release = _opened(handle, machine, memory, device)
    return CudaBuffer(memory, size, base + handle.offset, device, release, fabric=own)


def _opened(
    handle: Handle, machine: str, memory: Memory, device: CudaDevice
) -> tuple[int, fabric.Release]:
    """Opens an allocation on the same machine. Returns the address, and a function that closes the
    allocation."""
    if handle.machine != machine:
        where = f"{memory} is on {handle.machine}, cuda:{device.index} on {machine}"
        raise OutOfReach(f"{where}: CUDA IPC does not leave a machine")
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


def _mapped(
    handle: Handle, machine: str, memory: Memory, device: CudaDevice, domain: str | None
) -> tuple[int, fabric.Release]:
    """Maps a fabric allocation. Returns the address, and a function that unmaps it."""
    where = f"{memory} is on {handle.machine}, cuda:{device.index} on {machine}"
    if None not in (handle.domain, domain) and handle.domain != domain:
        raise OutOfReach(f"{where}: NVLink does not join them ({handle.domain} and {domain})")
    try:
        return fabric.open_handle(device, handle.allocation, handle.mapped, str(memory))
    except DeviceLost:
        raise
    except BackendError as error:
        raise OutOfReach(f"{where}: it does not open the fabric handle: {error}") from error

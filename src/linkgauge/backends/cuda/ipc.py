"""Device memory that another process of the same machine opens (CUDA IPC)."""

from __future__ import annotations

from functools import partial

import msgspec

from linkgauge.model.errors import BackendError, NoPeerAccess, Unsupported
from linkgauge.model.memory import Memory

from .device import CudaDevice
from .memory import CudaBuffer

_NOT_HERE = ("NOT_SUPPORTED", "PEER_ACCESS_UNSUPPORTED", "MAP_FAILED", "INVALID_DEVICE")
"""What the driver returns where two devices, or two containers, share no memory."""


class Handle(msgspec.Struct, frozen=True):
    """What opens a buffer: the `machine` that it is on, the driver's handle of its allocation, and
    where in it the buffer begins (bytes)."""

    machine: str
    allocation: bytes
    offset: int


def export(buffer: CudaBuffer, machine: str) -> bytes:
    """The buffer's handle, for processes of this machine. Raises BackendError."""
    device = buffer.home
    base, _ = device.call("cuMemGetAddressRange", buffer.address)
    handle = device.call("cuIpcGetMemHandle", int(base), about=str(buffer.memory))
    offset = buffer.address - int(base)
    return msgspec.msgpack.encode(Handle(machine, bytes(handle.reserved), offset))


def open_handle(
    exported: bytes, machine: str, memory: Memory, size: int, device: CudaDevice
) -> CudaBuffer:
    """Another process's buffer, for the engines of `device`. Raises Unsupported if it is on another
    machine, NoPeerAccess if the device does not reach it."""
    handle = msgspec.msgpack.decode(exported, type=Handle)
    if handle.machine != machine:
        where = f"{memory} is on {handle.machine}, cuda:{device.index} on {machine}"
        raise Unsupported(f"{where}: CUDA IPC does not leave a machine")
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
    release = partial(device.driver.call, "cuIpcCloseMemHandle", base)
    return CudaBuffer(memory, size, base + handle.offset, device, release)

"""Device memory that processes on other machines can map. The machines must be in the same NVLink
domain, and an IMEX channel must permit it (CUDA driver API, virtual memory management: fabric
handles)."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

from linkgauge.backends.host_memory import shift_within
from linkgauge.model.errors import AllocationError, BackendError, DeviceLost, Unsupported
from linkgauge.model.memory import Memory
from linkgauge.model.units import approximate_size

from .device import CudaDevice
from .memory import CudaBuffer, Fabric

Release = Callable[[], object]


def allocate(memory: Memory, size: int, home: CudaDevice) -> CudaBuffer:
    """Allocates device memory that other devices of the NVLink domain can map. `size` is in bytes.

    Raises Unsupported if the device or the machine cannot share memory in this way, and
    AllocationError if memory is short."""
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


def open_handle(device: CudaDevice, handle: bytes, size: int, about: str) -> tuple[int, Release]:
    """Maps the memory of another process. `size` is in bytes. Returns the address, and a function
    that unmaps the memory. Raises BackendError if the device cannot reach the memory."""
    with ExitStack() as undoing:
        device.enter()
        kind = device.driver.enums.CUmemAllocationHandleType.CU_MEM_HANDLE_TYPE_FABRIC
        name = "cuMemImportFromShareableHandle"
        theirs = device.driver.call(name, handle, kind, about=about)
        undoing.callback(device.driver.call, "cuMemRelease", theirs)
        start = _map(device, theirs, size, undoing, about)
        return start, undoing.pop_all().close


def _handle_type(device: CudaDevice) -> Any:
    """Returns CUDA's constant for fabric handles. Raises Unsupported if the driver is too old."""
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
    """Returns the properties of an allocation: device memory that can be exported."""
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
    """Returns `size` rounded up to the driver's granularity, in bytes."""
    least = device.driver.enums.CUmemAllocationGranularity_flags.CU_MEM_ALLOC_GRANULARITY_MINIMUM
    step = int(device.call("cuMemGetAllocationGranularity", properties, least))
    return -(-size // step) * step


def _map(device: CudaDevice, allocation: Any, size: int, undoing: ExitStack, about: str) -> int:
    """Maps an allocation into the device's address space, and returns the address."""
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

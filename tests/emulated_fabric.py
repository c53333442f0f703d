"""Memory of an emulated GPU that other processes map by fabric handles: files in memory, which any
process of this machine opens. Pages are out of reach until access to them is set."""

import ctypes
import mmap
import os
from itertools import count
from types import SimpleNamespace

from cuda_kit import Status

GRANULARITY = 2 << 20
_NONE, _FIXED = 0, 0x10
"""PROT_NONE and MAP_FIXED."""

_libc = ctypes.CDLL(None, use_errno=True)
_libc.mmap.restype = ctypes.c_void_p
_libc.mmap.argtypes = (ctypes.c_void_p, ctypes.c_size_t, *(ctypes.c_int,) * 3, ctypes.c_long)
_libc.munmap.argtypes = (ctypes.c_void_p, ctypes.c_size_t)
_libc.mprotect.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)


class FabricCalls:
    """The driver's calls, beside those of `Bindings`. `allocations` are files by their handles,
    `mapped` and `reserved` bytes by addresses."""

    def __init__(self):
        self.allocations = {}
        self.reserved = {}
        self.mapped = {}
        self._numbers = count(1)

    def cuMemGetAllocationGranularity(self, properties, option):  # noqa: N802  # the driver's names
        return Status.CUDA_SUCCESS, GRANULARITY

    def cuMemCreate(self, size, properties, flags):  # noqa: N802
        failed = self._done("cuMemCreate", size, properties.requestedHandleTypes)
        if failed:
            return failed
        assert size % GRANULARITY == 0
        file = os.memfd_create("device")
        os.ftruncate(file, size)
        return Status.CUDA_SUCCESS, self._allocation(file)

    def _allocation(self, file):
        number = next(self._numbers)
        self.allocations[number] = file
        return number

    def cuMemExportToShareableHandle(self, allocation, kind, flags):  # noqa: N802
        failed = self._done("cuMemExportToShareableHandle", allocation, kind)
        path = f"/proc/{os.getpid()}/fd/{self.allocations[allocation]}"
        return failed or (Status.CUDA_SUCCESS, SimpleNamespace(data=path.encode().ljust(64, b"\0")))

    def cuMemImportFromShareableHandle(self, handle, kind):  # noqa: N802
        failed = self._done("cuMemImportFromShareableHandle", handle, kind)
        if failed:
            return failed
        return Status.CUDA_SUCCESS, self._allocation(os.open(handle.rstrip(b"\0"), os.O_RDWR))

    def cuMemAddressReserve(self, size, alignment, address, flags):  # noqa: N802
        failed = self._done("cuMemAddressReserve", size)
        if failed:
            return failed
        anonymous = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
        start = _libc.mmap(None, size, _NONE, anonymous, -1, 0)
        self.reserved[start] = size
        return Status.CUDA_SUCCESS, start

    def cuMemMap(self, start, size, offset, allocation, flags):  # noqa: N802
        failed = self._done("cuMemMap", start, size)
        if failed:
            return failed
        assert self.reserved[start] == size
        shared, file = mmap.MAP_SHARED | _FIXED, self.allocations[allocation]
        assert _libc.mmap(start, size, _NONE, shared, file, offset) == start
        self.mapped[start] = size
        return (Status.CUDA_SUCCESS,)

    def cuMemSetAccess(self, start, size, access, number):  # noqa: N802
        failed = self._done("cuMemSetAccess", start, size)
        if failed:
            return failed
        (own,) = access
        assert own.location.type == "CU_MEM_LOCATION_TYPE_DEVICE"
        assert own.flags == "CU_MEM_ACCESS_FLAGS_PROT_READWRITE"
        assert _libc.mprotect(start, size, mmap.PROT_READ | mmap.PROT_WRITE) == 0
        return (Status.CUDA_SUCCESS,)

    def cuMemUnmap(self, start, size):  # noqa: N802
        self._done("cuMemUnmap", start, size)
        assert self.mapped.pop(start) == size
        assert _libc.mprotect(start, size, _NONE) == 0
        return (Status.CUDA_SUCCESS,)

    def cuMemAddressFree(self, start, size):  # noqa: N802
        self._done("cuMemAddressFree", start, size)
        assert start not in self.mapped, "unmapped before"
        assert self.reserved.pop(start) == size
        _libc.munmap(start, size)
        return (Status.CUDA_SUCCESS,)

    def cuMemRelease(self, allocation):  # noqa: N802
        self._done("cuMemRelease", allocation)
        os.close(self.allocations.pop(allocation))
        return (Status.CUDA_SUCCESS,)

    @property
    def holds_fabric(self):
        """Whether anything is left of it."""
        return bool(self.allocations or self.reserved or self.mapped)

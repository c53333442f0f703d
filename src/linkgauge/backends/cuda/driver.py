"""The boundary to CUDA: calls the driver by name and translates its errors."""

from __future__ import annotations

import ctypes
from importlib import import_module
from typing import Any

from linkgauge.model.errors import AllocationError, BackendError, Unsupported

LIBRARY = "libcuda.so.1"
_OLDEST_MAJOR = 12
_NEWEST_MAJOR = 13


class Driver:
    """The CUDA driver API. `enums` is the bindings' module, for its constants and types."""

    def __init__(self, bindings: Any) -> None:
        self.enums = bindings
        self._success = bindings.CUresult.CUDA_SUCCESS
        self._out_of_memory = bindings.CUresult.CUDA_ERROR_OUT_OF_MEMORY

    def call(self, name: str, *arguments: Any, about: str = "") -> Any:
        """What the driver function `name` returns besides its status: None, a value or a tuple.

        Raises AllocationError if memory is short, else BackendError, with the CUDA error's
        name; `about` says what the call was for (sizes, devices).
        """
        try:
            status, *values = getattr(self.enums, name)(*arguments)
        except RuntimeError as error:  # the bindings did not find the function: an older driver
            raise BackendError(name, str(error)) from error
        if status != self._success:
            kind = AllocationError if status == self._out_of_memory else BackendError
            raise kind(name, f"{self.error_name(status)}{f' ({about})' if about else ''}")
        if not values:
            return None
        return values[0] if len(values) == 1 else tuple(values)

    def error_name(self, status: Any) -> str:
        """CUDA's name of a status, such as CUDA_ERROR_OUT_OF_MEMORY."""
        return str(getattr(status, "name", status))

    def version(self) -> str:
        """The newest CUDA version that the driver supports, such as 13.0."""
        number = int(self.call("cuDriverGetVersion"))
        return f"{number // 1000}.{number % 1000 // 10}"


def open_driver() -> Driver:
    """The initialised driver. Raises Unsupported, in one line, if no driver or device is usable."""
    try:
        library = ctypes.CDLL(LIBRARY)
    except OSError:
        raise Unsupported(f"no NVIDIA driver: {LIBRARY} not found") from None
    try:
        bindings = import_module("cuda.bindings.driver")
    except ImportError:
        raise Unsupported(
            f"cuda-bindings is not installed: pip install 'linkgauge[{_extra(library)}]'"
        ) from None
    driver = Driver(bindings)
    try:
        (status,) = bindings.cuInit(0)
    except RuntimeError as error:  # the bindings themselves did not find the driver
        raise Unsupported(f"cuda-bindings cannot load the driver: {error}") from error
    if status != bindings.CUresult.CUDA_SUCCESS:
        raise Unsupported(f"no CUDA device can be used: cuInit: {driver.error_name(status)}")
    if driver.call("cuDeviceGetCount") == 0:
        raise Unsupported("no CUDA device is visible (CUDA_VISIBLE_DEVICES may hide them)")
    return driver


def _extra(library: ctypes.CDLL) -> str:
    """The extra that matches the driver: bindings of a newer major version do not run on it."""
    number = ctypes.c_int(0)
    library.cuDriverGetVersion(ctypes.byref(number))
    return f"cuda{min(max(number.value // 1000, _OLDEST_MAJOR), _NEWEST_MAJOR)}"

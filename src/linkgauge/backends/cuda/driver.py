"""How functions of the CUDA driver are called by name, and their errors raised as exceptions."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from linkgauge.model.errors import (
    AllocationError,
    BackendError,
    DeviceLost,
    TookTooLong,
    Unsupported,
    pip_install,
)

from .settings import cuda_version

LIBRARY = "libcuda.so.1"
_BINDINGS = "cuda.bindings.driver"
_NONE = "CUDA_ERROR_NO_DEVICE"
_KINDS: dict[str, type[BackendError]] = {
    "CUDA_ERROR_OUT_OF_MEMORY": AllocationError,
    "CUDA_ERROR_DEVICE_UNAVAILABLE": DeviceLost,
    _NONE: DeviceLost,
    "CUDA_ERROR_LAUNCH_TIMEOUT": TookTooLong,
    "CUDA_ERROR_TIMEOUT": TookTooLong,
}
"""Exceptions for statuses that name the cause. Other statuses, such as CUDA_ERROR_UNKNOWN, may mean
that a device is lost."""
_TAKES_DEVICE = "cuDevicePrimaryCtxRetain"
"""The first call that takes a device. It fails if the compute mode or another process prevents
this."""
_OLDEST_MAJOR = 12
_NEWEST_MAJOR = 13
_FITTING = "update the driver, or install what fits it: "
_REMEDIES = {
    "CUDA_ERROR_STUB_LIBRARY": f"{LIBRARY} is a toolkit's stub: take it out of LD_LIBRARY_PATH",
    "CUDA_ERROR_DEVICE_UNAVAILABLE": "its compute mode is exclusive and another process has it, or "
    "prohibited: sudo nvidia-smi -c DEFAULT lets all processes in",
    "CUDA_ERROR_SYSTEM_NOT_READY": "sudo systemctl start nvidia-fabricmanager",
    "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH": f"version mismatch: {LIBRARY} is not that of the loaded "
    "kernel module: reboot, or load the module again",
    "CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE": f"the driver is older than {LIBRARY}, which is of "
    "a compat package: update the driver, or take the package out of LD_LIBRARY_PATH",
    "CUDA_ERROR_UNSUPPORTED_PTX_VERSION": "the driver is older than NVRTC: "
    f"{_FITTING}{pip_install('linkgauge[cuda12]')}",
}
"""What the user can do about a status."""


class Driver:
    """The CUDA driver. `enums` is the Python module of its API: functions, constants and types."""

    def __init__(self, bindings: Any) -> None:
        self.enums = bindings
        self._success = bindings.CUresult.CUDA_SUCCESS
        self.lost_device: Callable[[], str | None] = lambda: None
        """A function that finds out, without CUDA, which device is lost, if any."""

    def call(self, name: str, *arguments: Any, about: str = "") -> Any:
        """Calls a function and returns its results without the status: None, a value or a tuple. If
        it fails, raises the exception that `error` makes, with `about` (such as sizes) in it."""
        try:
            status, *values = getattr(self.enums, name)(*arguments)
        except RuntimeError as error:  # the bindings did not find the function
            remedy = f"{_FITTING}{pip_install('linkgauge[cuda12]')}"
            older = f"{error}: the driver is older than cuda-bindings: {remedy}"
            raise BackendError(name, older) from error
        if status != self._success:
            raise self.error(name, status, about)
        if not values:
            return None
        return values[0] if len(values) == 1 else tuple(values)

    def error(self, call: str, status: Any, about: str = "") -> BackendError:
        """Returns the exception for a failed call: AllocationError if memory is short, DeviceLost
        if the device is gone, TookTooLong if the driver ended a kernel, else BackendError."""
        name = self.error_name(status)
        kind = _KINDS.get(name, BackendError)
        if kind is DeviceLost and call == _TAKES_DEVICE:
            kind = BackendError
        lost = self._ask_for_lost() if kind is BackendError else None
        remedy = None if kind is DeviceLost else _REMEDIES.get(name)
        found = about, lost and f"NVML: {lost} is lost", remedy
        said = "; ".join(filter(None, found))
        return (DeviceLost if lost else kind)(call, f"{name} ({said})" if said else name)

    def _ask_for_lost(self) -> str | None:
        # A failure during the search must not start a second search.
        ask, self.lost_device = self.lost_device, lambda: None
        try:
            return ask()
        finally:
            self.lost_device = ask

    def error_name(self, status: Any) -> str:
        return str(getattr(status, "name", status))

    def version(self) -> str:
        number = int(self.call("cuDriverGetVersion"))
        return cuda_version(number)


def find_driver() -> None:
    """Raises Unsupported without CUDA's driver or Python bindings. Does not start the driver."""
    try:
        library = ctypes.CDLL(LIBRARY)
    except OSError:
        raise Unsupported(f"no NVIDIA driver: {LIBRARY} not found") from None
    try:
        is_there = _BINDINGS in sys.modules or find_spec(_BINDINGS) is not None
    except ImportError:  # of a package above it
        is_there = False
    if not is_there:
        remedy = pip_install(f"linkgauge[{_extra(library)}]")
        raise Unsupported(f"cuda-bindings is not installed: {remedy}")


def open_driver() -> Driver:
    """Opens the CUDA driver. Raises Unsupported if there is no usable driver or device."""
    find_driver()
    try:
        bindings = import_module(_BINDINGS)
    except ImportError as error:
        raise Unsupported(f"cuda-bindings does not load: {error}") from error
    driver = Driver(bindings)
    try:
        (status,) = bindings.cuInit(0)
    except RuntimeError as error:  # the bindings themselves did not find the driver
        raise Unsupported(f"cuda-bindings cannot load the driver: {error}") from error
    if status != bindings.CUresult.CUDA_SUCCESS and driver.error_name(status) != _NONE:
        raise Unsupported(f"no CUDA device can be used: {driver.error('cuInit', status)}")
    if int((version := driver.version()).partition(".")[0]) < _OLDEST_MAJOR:
        oldest = f"older than CUDA {_OLDEST_MAJOR}, the oldest that linkgauge uses: update it"
        raise Unsupported(f"the driver is of CUDA {version}, {oldest}")
    if driver.error_name(status) == _NONE or driver.call("cuDeviceGetCount") == 0:
        from .nvml.cards import why_none

        raise Unsupported(f"no CUDA device is visible: {why_none()}")
    return driver


def _extra(library: ctypes.CDLL) -> str:
    # Bindings that are newer than the driver would not run on it.
    number = ctypes.c_int(0)
    library.cuDriverGetVersion(ctypes.byref(number))
    return f"cuda{min(max(number.value // 1000, _OLDEST_MAJOR), _NEWEST_MAJOR)}"

"""Calls NCCL and raises its errors. NVIDIA's package nccl4py creates the communicators."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from ctypes import byref, c_char_p, c_int, c_void_p
from functools import partial
from importlib import import_module
from typing import Any

from linkgauge.backends.cuda.device import CudaDevice
from linkgauge.backends.iterations import address_of
from linkgauge.backends.number_bytes import encode
from linkgauge.backends.offering import errors_of
from linkgauge.model.errors import BackendError, Unsupported, pip_install
from linkgauge.model.operations.collective import NumberType, Reduction

_REMEDY = f"{pip_install('linkgauge[nccl13]')} (nccl12 for drivers of CUDA 12)"
_SUCCESS, _INVALID_ARGUMENT = 0, 4
_REDUCTIONS: dict[Reduction, int] = {"sum": 0, "prod": 1, "max": 2, "min": 3, "avg": 4}
_HOST_IMMEDIATE = 1
"""NCCL's constant for a scaling factor in host memory (nccl.h)."""
_SYMMETRIC = 1
"""NCCL's constant NCCL_WIN_COLL_SYMMETRIC."""
_bindings = partial(errors_of, "nccl")
"""Turns errors of nccl4py into BackendError."""


class Nccl:
    def __init__(self, core: Any, path: str) -> None:
        self._core = core
        self.path = path
        self._library = ctypes.CDLL(path)
        self._library.ncclGetErrorString.restype = c_char_p
        self._library.ncclGetLastError.restype = c_char_p
        number = c_int()
        self.call("ncclGetVersion", byref(number))
        self.number = number.value
        """The version as ncclGetVersion returns it: 22809 is 2.28.9."""

    @property
    def version(self) -> str:
        return f"{self.number // 10000}.{self.number // 100 % 100}.{self.number % 100}"

    def has(self, function: str) -> bool:
        return hasattr(self._library, function)

    def address(self, function: str) -> int:
        """Returns a function's address. Raises Unsupported if this NCCL has no such function."""
        if not self.has(function):
            raise Unsupported(f"NCCL {self.version} has no {function}")
        return address_of(self._library, function)

    def call(self, name: str, *arguments: Any) -> None:
        status = getattr(self._library, name)(*arguments)
        if status != _SUCCESS:
            raise self.error(name, status)

    def error(self, name: str, status: int) -> BackendError | Unsupported:
        """Returns the exception for a failed call: Unsupported (bad arguments) or BackendError."""
        said = self._library.ncclGetErrorString(c_int(status)).decode(errors="replace")
        last = (self._library.ncclGetLastError(c_void_p()) or b"").decode(errors="replace")
        why = last.strip().splitlines()[-1:] if last.strip() else []
        if status == _INVALID_ARGUMENT:
            return Unsupported(": ".join([f"NCCL {self.version} does not accept it: {name}", said]))
        return BackendError(name, ": ".join([said, *why]))

    def token(self) -> bytes:
        with _bindings("ncclGetUniqueId"):
            return bytes(self._core.get_unique_id())

    def join(self, token: bytes, ranks: int, here: Sequence[tuple[int, CudaDevice]]) -> list[Any]:
        """Creates communicators for this process's ranks, `here`. Waits for other processes."""
        unique = self._core.UniqueId.from_bytes(token)
        made = []
        with self._together("ncclCommInitRank", here):
            for rank, device in here:
                device.enter()
                made.append(self._core.Communicator.init(ranks, rank, unique))
        return made

    def leave(self, communicators: Sequence[Any]) -> None:
        with self._together("ncclCommDestroy", communicators):
            for one in communicators:
                one.destroy()

    @contextmanager
    def _together(self, call: str, ranks: Sequence[Any]) -> Iterator[None]:
        with _bindings(call), self._core.group() if len(ranks) > 1 else nullcontext():
            yield

    def check(self, communicator: Any) -> None:
        """Raises BackendError if the communicator has failed in the background."""
        status = c_int()
        self.call("ncclCommGetAsyncError", c_void_p(communicator.ptr), byref(status))
        if status.value != _SUCCESS:
            raise self.error("ncclCommGetAsyncError", status.value)

    def reduction(
        self,
        communicator: Any,
        reduction: Reduction,
        number: NumberType,
        rank: int,
        owner: ExitStack,
    ) -> int:
        """Returns NCCL's code of a reduction. The code of `mulsum` is freed as `owner` closes."""
        if reduction != "mulsum":
            return _REDUCTIONS[reduction]
        made, factor = c_int(), encode(number.name, [1 + rank % 2])
        self.call(
            "ncclRedOpCreatePreMulSum", byref(made), c_char_p(factor), c_int(number.code),
            c_int(_HOST_IMMEDIATE), c_void_p(communicator.ptr),
        )  # fmt: skip
        owner.callback(self.call, "ncclRedOpDestroy", made, c_void_p(communicator.ptr))
        return made.value

    def allocate(self, device: CudaDevice, size: int) -> int:
        address = c_void_p()
        device.enter()
        self.call("ncclMemAlloc", byref(address), ctypes.c_size_t(size))
        return address.value or 0

    def free(self, address: int) -> None:
        self.call("ncclMemFree", c_void_p(address))

    @contextmanager
    def grouped(self) -> Iterator[None]:
        """Makes an NCCL group of the calls in the block, so that they may wait for each other."""
        self.call("ncclGroupStart")
        try:
            yield
        except BaseException:
            self.end_groups(1)
            raise
        self.call("ncclGroupEnd")

    def end_groups(self, count: int) -> None:
        """Ends `count` NCCL groups after a failed call. Otherwise, they would block later calls."""
        for _ in range(count):
            self._library.ncclGroupEnd()  # it repeats the call's error

    def register(self, communicator: Any, address: int, size: int, *, symmetric: bool) -> c_void_p:
        """Registers a buffer, and returns a handle, which NCCL sets when the NCCL group ends."""
        handle = c_void_p()
        name = "ncclCommWindowRegister" if symmetric else "ncclCommRegister"
        self.address(name)
        kinds = (c_int(_SYMMETRIC),) if symmetric else ()
        place = c_void_p(communicator.ptr), c_void_p(address), ctypes.c_size_t(size)
        self.call(name, *place, byref(handle), *kinds)
        return handle

    def unregister(self, communicator: Any, handle: c_void_p, *, symmetric: bool) -> None:
        name = "ncclCommWindowDeregister" if symmetric else "ncclCommDeregister"
        self.call(name, c_void_p(communicator.ptr), handle)


def open_nccl() -> Nccl:
    """Loads NCCL. If NCCL or nccl4py is missing, raises Unsupported with a remedy."""
    try:
        core = import_module("nccl.core")
    except (ImportError, RuntimeError) as error:
        said = str(error).partition("\n")[0]
        raise Unsupported(f"no NCCL for Python ({said}): {_REMEDY}") from error
    try:
        library = core.get_version().libnccl
        path = None if library is None else library.path
    except Exception as error:
        raise Unsupported(f"cannot load NCCL ({error}): {_REMEDY}") from error
    if path is None:
        raise Unsupported(f"libnccl.so.2 not found: {_REMEDY}")
    try:
        return Nccl(core, str(path))
    except (OSError, AttributeError) as error:
        raise Unsupported(f"cannot load NCCL ({error}): {_REMEDY}") from error

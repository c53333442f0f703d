"""Calls UCX's C functions in libucp.so.0, because the package ucxx also needs packages of CUDA.
Structures are as in ucp/api/ucp.h of UCX 1.12; later versions only add fields at the end."""

from __future__ import annotations

import ctypes
import importlib
import importlib.util
import os
from collections.abc import Callable, Mapping
from ctypes import POINTER, byref, c_byte, c_char_p, c_int, c_size_t, c_uint, c_uint64, c_void_p
from functools import cache
from pathlib import Path
from typing import Any, cast

import msgspec

from linkgauge.backends.iterations import address_of
from linkgauge.model.errors import BackendError, Unsupported, pip_install

_API = (1, 12)
_TAG, _RMA = 1 << 0, 1 << 1
_ADDRESS, _LENGTH, _MEMORY_TYPE = 1 << 0, 1 << 1, 1 << 4
"""Bits for fields of ucp_mem_map_params_t."""
_MEMORY_TYPES = {"host": 0, "cuda": 1}
"""Values of ucs_memory_type_t, by the space of a memory."""
MISSING = f"no UCX here (libucp.so.0): {pip_install('linkgauge[ucx]')}"
_OF_SYSTEM = "RAPIDS_LIBUCX_PREFER_SYSTEM_LIBRARY"
"""The wheel's variable that selects the system's library in place of its own."""
NO_RDMA = f"the wheel's UCX has no RDMA: {_OF_SYSTEM}=true uses the system's (Debian: libucx0)"

_TELLS_IPV4 = (1, 19)
"""The first version of UCX that handles IPv4 packets correctly on all devices. On devices that are
not NVIDIA's, earlier versions drop the packets and at last end the process (UCX's commit 7de57ad9),
unless destinations are not compared."""


class _Params(ctypes.Structure):
    """The first fields of ucp_params_t; UCX does not read the `rest` here."""

    _fields_ = (("mask", c_uint64), ("features", c_uint64), ("rest", c_uint64 * 14))


class _WorkerParams(ctypes.Structure):
    """Parameters of a worker. With empty parameters, only one thread may use the worker."""

    _fields_ = (("mask", c_uint64), ("rest", c_uint64 * 31))


class _EndParams(ctypes.Structure):
    _fields_ = (("mask", c_uint64), ("address", c_void_p), ("rest", c_uint64 * 30))


class _MapParams(ctypes.Structure):
    _fields_ = (
        ("mask", c_uint64), ("address", c_void_p), ("length", c_size_t), ("flags", c_uint),
        ("protection", c_uint), ("memory_type", c_uint), ("rest", c_uint64 * 11),
    )  # fmt: skip


_STATUS: dict[str, tuple[Any, ...]] = {
    "ucp_init_version": (c_uint, c_uint, POINTER(_Params), c_void_p, POINTER(c_void_p)),
    "ucp_config_read": (c_char_p, c_char_p, POINTER(c_void_p)),
    "ucp_config_modify": (c_void_p, c_char_p, c_char_p),
    "ucp_worker_create": (c_void_p, POINTER(_WorkerParams), POINTER(c_void_p)),
    "ucp_worker_get_address": (c_void_p, POINTER(c_void_p), POINTER(c_size_t)),
    "ucp_ep_create": (c_void_p, POINTER(_EndParams), POINTER(c_void_p)),
    "ucp_mem_map": (c_void_p, POINTER(_MapParams), POINTER(c_void_p)),
    "ucp_mem_unmap": (c_void_p, c_void_p),
    "ucp_rkey_pack": (c_void_p, c_void_p, POINTER(c_void_p), POINTER(c_size_t)),
    "ucp_ep_rkey_unpack": (c_void_p, c_char_p, POINTER(c_void_p)),
}
_PLAINLY: dict[str, tuple[Any, ...]] = {
    "ucp_worker_destroy": (c_void_p,),
    "ucp_cleanup": (c_void_p,),
    "ucp_config_release": (c_void_p,),
    "ucp_rkey_destroy": (c_void_p,),
}
_TIMED = (
    "ucp_put_nbx", "ucp_get_nbx", "ucp_ep_flush_nbx", "ucp_tag_send_nbx", "ucp_tag_recv_nbx",
    "ucp_worker_progress", "ucp_request_check_status", "ucp_request_cancel", "ucp_request_free",
)  # fmt: skip


@cache
def library() -> ctypes.CDLL:
    """Loads UCX from its Python package or the system. Raises Unsupported without UCX."""
    os.environ.setdefault("UCX_LOG_FILE", "stderr")  # stdout is for results
    spec = importlib.util.find_spec("libucx")
    of_system = os.environ.get(_OF_SYSTEM, "false").lower() != "false"
    try:
        if spec is not None and spec.origin is not None and not of_system:
            importlib.import_module("libucx").load_library()
            lib = ctypes.CDLL(str(Path(spec.origin).parent / "lib" / "libucp.so.0"))
        else:
            lib = ctypes.CDLL("libucp.so.0")
    except OSError as error:
        raise Unsupported(MISSING) from error
    for functions, kind in ((_STATUS, c_byte), (_PLAINLY, None)):  # ucs_status_t is one byte
        for name, arguments in functions.items():
            function = getattr(lib, name)
            function.argtypes, function.restype = arguments, kind
    lib.ucp_get_version_string.restype = c_char_p
    if _numbers(lib) < _TELLS_IPV4:
        os.environ.setdefault("UCX_UD_VERBS_ETH_DGID_CHECK", "n")
    return lib


def _numbers(lib: ctypes.CDLL) -> tuple[int, ...]:
    return tuple(int(word) for word in lib.ucp_get_version_string().decode().split(".")[:2])


def lacks_rdma() -> bool:
    path = Path(library()._name)  # noqa: SLF001  # ctypes has no other name for it
    return path.is_absolute() and not any(path.parent.glob("ucx/libuct_ib*"))


@cache
def _words() -> Callable[[int], bytes]:
    name = Path(library()._name)  # noqa: SLF001  # ctypes has no other name for it
    function: Any = ctypes.CDLL(str(name.with_name("libucs.so.0"))).ucs_status_string
    function.argtypes, function.restype = (c_int,), c_char_p
    return cast("Callable[[int], bytes]", function)


def version() -> str:
    return f"UCX {library().ucp_get_version_string().decode()}"


@cache
def timed() -> Mapping[str, int]:
    return {name: address_of(library(), name) for name in _TIMED}


def check(call: str, status: int, about: str = "") -> None:
    """Raises BackendError if the status of a call is an error."""
    if status < 0:
        words = _words()(status).decode()
        raise BackendError(call, f"{about}: {words}" if about else words)


class Mapped(msgspec.Struct, frozen=True):
    """What other ranks need to use memory: its owner's worker, its key and its first address."""

    worker: bytes
    key: bytes
    address: int


class Worker:
    """A UCX worker for one thread. `settings` (such as `TLS`) override environment variables."""

    def __init__(self, settings: dict[str, str]) -> None:
        lib = library()
        config, self._context, self._worker = c_void_p(), c_void_p(), c_void_p()
        check("ucp_config_read", lib.ucp_config_read(None, None, byref(config)))
        try:
            for name, value in settings.items():
                status = lib.ucp_config_modify(config, name.encode(), value.encode())
                check("ucp_config_modify", status)
            asked = _Params(mask=1, features=_TAG | _RMA)
            status = lib.ucp_init_version(*_API, byref(asked), config, byref(self._context))
            check("ucp_init", status)
        finally:
            lib.ucp_config_release(config)
        status = lib.ucp_worker_create(self._context, byref(_WorkerParams()), byref(self._worker))
        check("ucp_worker_create", status)
        self._ends: dict[bytes, int] = {}
        self._keys: dict[tuple[int, bytes], c_void_p] = {}
        self._address = self._bytes_of(lib.ucp_worker_get_address, self._worker)

    def _bytes_of(self, function: Any, *of: Any) -> bytes:
        found, size = c_void_p(), c_size_t()
        check(function.__name__, function(*of, byref(found), byref(size)))
        return ctypes.string_at(found.value or 0, size.value)

    @property
    def handle(self) -> int:
        return self._worker.value or 0

    def map(self, address: int, size: int, space: str = "host") -> tuple[c_void_p, Mapped]:
        """Maps memory for other ranks. UCX may not recognise GPU memory without `space`."""
        handle, lib = c_void_p(), library()
        asked = _MapParams(
            mask=_ADDRESS | _LENGTH | _MEMORY_TYPE,
            address=address,
            length=size,
            memory_type=_MEMORY_TYPES[space],
        )
        check("ucp_mem_map", lib.ucp_mem_map(self._context, byref(asked), byref(handle)))
        key = self._bytes_of(lib.ucp_rkey_pack, self._context, handle)
        return handle, Mapped(self._address, key, address)

    def unmap(self, handle: c_void_p) -> None:
        check("ucp_mem_unmap", library().ucp_mem_unmap(self._context, handle))

    def end(self, address: bytes) -> int:
        """Returns the endpoint at another worker's address. UCX closes it with this worker."""
        if address not in self._ends:
            there = ctypes.create_string_buffer(address, len(address))
            asked, made = _EndParams(mask=1, address=ctypes.addressof(there)), c_void_p()
            check("ucp_ep_create", library().ucp_ep_create(self.handle, byref(asked), byref(made)))
            self._ends[address] = made.value or 0
        return self._ends[address]

    def key(self, end: int, packed: bytes) -> int:
        if (end, packed) not in self._keys:
            key = c_void_p()
            check("ucp_ep_rkey_unpack", library().ucp_ep_rkey_unpack(end, packed, byref(key)))
            self._keys[end, packed] = key
        return self._keys[end, packed].value or 0

    def close(self) -> None:
        """Closes without a message to the other ranks, because they may have ended."""
        for key in self._keys.values():
            library().ucp_rkey_destroy(key)
        library().ucp_worker_destroy(self._worker)
        library().ucp_cleanup(self._context)

"""UCX by its C functions: contexts, workers, memory that other ranks reach, and what goes there.

Its own Python package (ucxx) needs CUDA's and RAPIDS' packages to be imported, its library needs
nothing: libucp.so.0 of the wheel libucx, or of the system. Layouts and values are those of
ucp/api/ucp.h of UCX 1.12, which later versions extend at the end.
"""

from __future__ import annotations

import ctypes
import importlib
import importlib.util
from collections.abc import Callable
from ctypes import POINTER, byref, c_char_p, c_int, c_size_t, c_uint, c_uint64, c_void_p
from functools import cache
from pathlib import Path
from typing import Any, cast

import msgspec

from linkgauge.model.errors import BackendError, Unsupported

_API = (1, 12)
_TAG, _RMA = 1 << 0, 1 << 1
_IN_PROGRESS = 1
_ALL_TAGS = (1 << 64) - 1
_MOST_ERROR = 4096
"""Pointers above the last so many bytes are errors, negated."""
MISSING = "no UCX here (libucp.so.0): pip install '.[ucx]'"


class _Params(ctypes.Structure):
    """The leading fields of ucp_params_t, in place of all others that nobody reads."""

    _fields_ = (("mask", c_uint64), ("features", c_uint64), ("rest", c_uint64 * 14))


class _WorkerParams(ctypes.Structure):
    """ucp_worker_params_t: without fields, a worker is of one thread."""

    _fields_ = (("mask", c_uint64), ("rest", c_uint64 * 31))


class _EndParams(ctypes.Structure):
    _fields_ = (("mask", c_uint64), ("address", c_void_p), ("rest", c_uint64 * 30))


class _MapParams(ctypes.Structure):
    _fields_ = (
        ("mask", c_uint64), ("address", c_void_p), ("length", c_size_t), ("rest", c_uint64 * 13),
    )  # fmt: skip


class _Request(ctypes.Structure):
    """ucp_request_param_t: without fields, whoever asks polls the request and frees it."""

    _fields_ = (("mask", ctypes.c_uint32), ("flags", ctypes.c_uint32), ("rest", c_uint64 * 15))


_PLAIN = _Request()

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
    "ucp_request_check_status": (c_void_p,),
}
_POINTERS: dict[str, tuple[Any, ...]] = {
    "ucp_put_nbx": (c_void_p, c_void_p, c_size_t, c_uint64, c_void_p, POINTER(_Request)),
    "ucp_get_nbx": (c_void_p, c_void_p, c_size_t, c_uint64, c_void_p, POINTER(_Request)),
    "ucp_tag_send_nbx": (c_void_p, c_void_p, c_size_t, c_uint64, POINTER(_Request)),
    "ucp_tag_recv_nbx": (c_void_p, c_void_p, c_size_t, c_uint64, c_uint64, POINTER(_Request)),
    "ucp_ep_flush_nbx": (c_void_p, POINTER(_Request)),
}
_PLAINLY: dict[str, tuple[Any, ...]] = {
    "ucp_request_free": (c_void_p,),
    "ucp_worker_destroy": (c_void_p,),
    "ucp_cleanup": (c_void_p,),
    "ucp_config_release": (c_void_p,),
    "ucp_rkey_destroy": (c_void_p,),
}


@cache
def library() -> ctypes.CDLL:
    """UCX's, with the types of its functions. Raises Unsupported where there is none."""
    spec = importlib.util.find_spec("libucx")
    try:
        if spec is not None and spec.origin is not None:
            importlib.import_module("libucx").load_library()
            lib = ctypes.CDLL(str(Path(spec.origin).parent / "lib" / "libucp.so.0"))
        else:
            lib = ctypes.CDLL("libucp.so.0")
    except OSError as error:
        raise Unsupported(MISSING) from error
    for functions, kind in ((_STATUS, c_int), (_POINTERS, c_void_p), (_PLAINLY, None)):
        for name, arguments in functions.items():
            function = getattr(lib, name)
            function.argtypes, function.restype = arguments, kind
    lib.ucp_worker_progress.argtypes, lib.ucp_worker_progress.restype = (c_void_p,), c_uint
    lib.ucp_get_version_string.restype = c_char_p
    return lib


@cache
def _words() -> Callable[[int], bytes]:
    """What UCX says of a status, from its other library in the same folder."""
    name = Path(library()._name)  # noqa: SLF001  # ctypes has no other name for it
    function: Any = ctypes.CDLL(str(name.with_name("libucs.so.0"))).ucs_status_string
    function.argtypes, function.restype = (c_int,), c_char_p
    return cast("Callable[[int], bytes]", function)


def version() -> str:
    return f"UCX {library().ucp_get_version_string().decode()}"


def _check(call: str, status: int) -> None:
    """Raises BackendError for a status that is an error."""
    if status < 0:
        raise BackendError(call, _words()(status).decode())


class Mapped(msgspec.Struct, frozen=True):
    """Memory that other ranks reach: the address of the worker that serves it, its key, and where
    it begins."""

    worker: bytes
    key: bytes
    address: int


class Pending:
    """What was begun, until it `is_done`."""

    def __init__(self, call: str, pointer: int | None) -> None:
        self._call = call
        self._pointer = pointer or 0
        if self._pointer > (1 << 64) - _MOST_ERROR:
            status = self._pointer - (1 << 64)
            self._pointer = 0
            _check(call, status)

    @property
    def is_done(self) -> bool:
        """Raises BackendError if it failed."""
        if not self._pointer:
            return True
        status = library().ucp_request_check_status(self._pointer)
        if status == _IN_PROGRESS:
            return False
        self.drop()
        _check(self._call, status)
        return True

    def drop(self) -> None:
        if self._pointer:
            library().ucp_request_free(self._pointer)
            self._pointer = 0


class End:
    """The way to another rank's worker."""

    def __init__(self, worker: int, address: bytes) -> None:
        self._keys: dict[bytes, c_void_p] = {}
        self.handle = c_void_p()
        self._address = ctypes.create_string_buffer(address, len(address))
        asked = _EndParams(mask=1, address=ctypes.addressof(self._address))
        _check("ucp_ep_create", library().ucp_ep_create(worker, byref(asked), byref(self.handle)))

    def _key(self, packed: bytes) -> c_void_p:
        if packed not in self._keys:
            key = c_void_p()
            status = library().ucp_ep_rkey_unpack(self.handle, packed, byref(key))
            _check("ucp_ep_rkey_unpack", status)
            self._keys[packed] = key
        return self._keys[packed]

    def mover(self, own: int, size: int, there: Mapped, *, puts: bool) -> Callable[[], Pending]:
        """Puts its own bytes there, or gets those that are there, each time that it is called."""
        call = "ucp_put_nbx" if puts else "ucp_get_nbx"
        function, key = getattr(library(), call), self._key(there.key)
        arguments = (self.handle, own, size, there.address, key, byref(_PLAIN))
        return lambda: Pending(call, function(*arguments))

    def flush(self) -> Pending:
        """Until all that was put is there."""
        return Pending("ucp_ep_flush_nbx", library().ucp_ep_flush_nbx(self.handle, byref(_PLAIN)))

    def say(self, word: Any, tag: int) -> Pending:
        arguments = (self.handle, ctypes.addressof(word), len(word), tag, byref(_PLAIN))
        return Pending("ucp_tag_send_nbx", library().ucp_tag_send_nbx(*arguments))

    def close(self) -> None:
        """Lets go of its keys; the worker's end is its own."""
        for key in self._keys.values():
            library().ucp_rkey_destroy(key)


class Worker:
    """A context with these settings beside the environment's (`NET_DEVICES`, `TLS`), and its one
    worker, which the thread that opened it uses."""

    def __init__(self, settings: dict[str, str]) -> None:
        lib = library()
        config, self._context, self._worker = c_void_p(), c_void_p(), c_void_p()
        _check("ucp_config_read", lib.ucp_config_read(None, None, byref(config)))
        try:
            for name, value in settings.items():
                status = lib.ucp_config_modify(config, name.encode(), value.encode())
                _check("ucp_config_modify", status)
            asked = _Params(mask=1, features=_TAG | _RMA)
            status = lib.ucp_init_version(*_API, byref(asked), config, byref(self._context))
            _check("ucp_init", status)
        finally:
            lib.ucp_config_release(config)
        status = lib.ucp_worker_create(self._context, byref(_WorkerParams()), byref(self._worker))
        _check("ucp_worker_create", status)
        self._ends: dict[bytes, End] = {}
        self._address = self._bytes_of(lib.ucp_worker_get_address, self._worker)

    def _bytes_of(self, function: Any, *of: Any) -> bytes:
        found, size = c_void_p(), c_size_t()
        _check(function.__name__, function(*of, byref(found), byref(size)))
        return ctypes.string_at(found.value or 0, size.value)

    def map(self, address: int, size: int) -> tuple[c_void_p, Mapped]:
        """The memory's handle here, and what others reach it by."""
        handle, lib = c_void_p(), library()
        asked = _MapParams(mask=3, address=address, length=size)
        _check("ucp_mem_map", lib.ucp_mem_map(self._context, byref(asked), byref(handle)))
        key = self._bytes_of(lib.ucp_rkey_pack, self._context, handle)
        return handle, Mapped(self._address, key, address)

    def unmap(self, handle: c_void_p) -> None:
        _check("ucp_mem_unmap", library().ucp_mem_unmap(self._context, handle))

    def end(self, address: bytes) -> End:
        if address not in self._ends:
            self._ends[address] = End(self._worker.value or 0, address)
        return self._ends[address]

    def hear(self, word: Any, tag: int) -> Pending:
        arguments = (self._worker, ctypes.addressof(word), len(word), tag, _ALL_TAGS)
        return Pending("ucp_tag_recv_nbx", library().ucp_tag_recv_nbx(*arguments, byref(_PLAIN)))

    def progress(self) -> int:
        """What has happened since: 0 if nothing."""
        return int(library().ucp_worker_progress(self._worker))

    def close(self) -> None:
        """The other ranks may be gone: nobody is told."""
        for end in self._ends.values():
            end.close()
        library().ucp_worker_destroy(self._worker)
        library().ucp_cleanup(self._context)

"""How the native core repeats calls of the OpenCL library on a command queue."""

from __future__ import annotations

import ctypes
import re
from collections.abc import Iterator
from functools import cache

import pyopencl as cl

from linkgauge.backends.iterations import Named, Queue, address_of
from linkgauge.backends.protocol import Buffer
from linkgauge.machine.tree import ROOT
from linkgauge.model.errors import BackendError, Unsupported

from .memory import own
from .runtime import OpenCLDevice, calling, error_of

_NO_EVENTS = (0, 0, 0)
"""Arguments for a command without events: their number, their list, and the place of the command's
own event."""
_LIBRARY = re.compile(r"^(?:\S+\s+){5}(/.*libOpenCL[^/\n]*?)(?: \(deleted\))?$", re.MULTILINE)
"""A line of /proc/self/maps with the OpenCL library: five fields, then the path."""


class OpenCLQueue(Queue):
    def __init__(self, unit: OpenCLDevice) -> None:
        self._unit = unit
        with calling("clCreateCommandQueue"):
            self._queue = cl.CommandQueue(unit.context, unit.handle)
        self._at = int(self._queue.int_ptr)
        self._kept: list[object] = []
        """The objects to which calls refer by address; they must live as long as these calls."""

    def address_of(self, name: str) -> int:
        return address_of(_library(), name)

    def error_of(self, name: str, status: int) -> BackendError:
        return error_of(status, name)

    def copy(self, destination: Buffer | None, source: Buffer | None, size: int) -> Iterator[Named]:
        into, of = own(destination), own(source)
        self._kept += into, of
        if into.memory.is_device and of.memory.is_device:
            both = int(of.for_copy(size).int_ptr), int(into.for_copy(size).int_ptr)
            yield "clEnqueueCopyBuffer", (self._at, *both, 0, 0, size, *_NO_EVENTS)
            return
        name, device, host = "clEnqueueReadBuffer", of, into
        if into.memory.is_device:
            name, device, host = "clEnqueueWriteBuffer", into, of
        place = ctypes.addressof(host.for_copy(size))
        words = int(device.for_copy(size).int_ptr), 0, 0, size, place
        yield name, (self._at, *words, *_NO_EVENTS)

    def sync(self) -> Iterator[Named]:
        yield "clFinish", (self._at,)

    def launch(self) -> Iterator[Named]:
        kernel, one = self._unit.kernel("nothing", file="nothing"), ctypes.c_size_t(1)
        self._kept += kernel, one
        size = ctypes.addressof(one)
        words = int(kernel.int_ptr), 1, 0, size, size
        yield "clEnqueueNDRangeKernel", (self._at, *words, *_NO_EVENTS)
        yield from self.sync()


@cache
def _library() -> ctypes.CDLL:
    found = _LIBRARY.search(ROOT.text("proc/self/maps") or "")
    if found is None:
        raise Unsupported("cannot find the loaded OpenCL library (/proc/self/maps)")
    try:
        return ctypes.CDLL(found[1])
    except OSError as error:
        raise Unsupported(f"cannot open the loaded OpenCL library: {error}") from None

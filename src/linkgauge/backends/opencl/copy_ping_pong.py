"""Copies there and back by the runtime's copy command, each waited for by the host."""

from __future__ import annotations

import ctypes
import re
from contextlib import ExitStack
from functools import cache
from itertools import chain

import pyopencl as cl

from linkgauge.backends.iterations import Call, IteratedGroup, address_of
from linkgauge.backends.protocol import Copy
from linkgauge.machine.tree import ROOT, read_text
from linkgauge.model.errors import BackendError, Unsupported

from .buffer import OpenCLBuffer, own
from .runtime import OpenCLDevice, calling, error_of

_NO_EVENTS = (0, 0, 0)
"""Number and list of events to wait for, and where to put the command's own."""
_LIBRARY = re.compile(r"(/\S*libOpenCL\S*)$", re.MULTILINE)


def ping_pong(unit: OpenCLDevice, copy: Copy) -> IteratedGroup:
    """The two calls of a copy, and those of the one back. Raises Unsupported where the OpenCL
    library cannot be found."""
    ends = own(copy.source), own(copy.destination)
    with calling("clCreateCommandQueue"):
        queue = cl.CommandQueue(unit.context, unit.handle)
    moves = [_move(queue, *pair, copy.size) for pair in (ends, ends[::-1])]
    finish = "clFinish", (int(queue.int_ptr),)
    named = list(chain.from_iterable((move, finish) for move in moves))
    calls: list[Call] = [(address_of(_library(), name), words) for name, words in named]

    def error(status: int, failed: int) -> BackendError:
        return error_of(status, named[failed][0])

    made = ExitStack()
    made.callback(list, (queue, ends))  # until then they must live
    return IteratedGroup(calls, 2, error, made=made)


def _move(
    queue: cl.CommandQueue, source: OpenCLBuffer, destination: OpenCLBuffer, size: int
) -> tuple[str, tuple[int, ...]]:
    """The function and its arguments that enqueue a copy and do not wait for it."""
    at = int(queue.int_ptr)
    if source.memory.is_device and destination.memory.is_device:
        both = int(source.for_copy(size).int_ptr), int(destination.for_copy(size).int_ptr)
        return "clEnqueueCopyBuffer", (at, *both, 0, 0, size, *_NO_EVENTS)
    name, device, host = "clEnqueueReadBuffer", source, destination
    if destination.memory.is_device:
        name, device, host = "clEnqueueWriteBuffer", destination, source
    place = ctypes.addressof(host.for_copy(size))
    return name, (at, int(device.for_copy(size).int_ptr), 0, 0, size, place, *_NO_EVENTS)


@cache
def _library() -> ctypes.CDLL:
    """The library that pyopencl has loaded: another may know other devices. Raises Unsupported if
    it is not to be found."""
    found = _LIBRARY.search(read_text(ROOT, "proc/self/maps") or "")
    if found is None:
        raise Unsupported("the OpenCL library that is loaded cannot be found (/proc/self/maps)")
    return ctypes.CDLL(found[1])

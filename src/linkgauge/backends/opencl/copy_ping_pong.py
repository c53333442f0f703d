"""Copies there and back by the runtime's copy command, each waited for by the host."""

from __future__ import annotations

import ctypes

import pyopencl as cl

from linkgauge.backends.iterations import IteratedGroup
from linkgauge.backends.protocol import Copy

from .buffer import OpenCLBuffer, own
from .library import NO_EVENTS, Named, iterated
from .runtime import OpenCLDevice, calling


def ping_pong(unit: OpenCLDevice, copy: Copy) -> IteratedGroup:
    """The two calls of a copy, and those of the one back."""
    there = own(copy.source), own(copy.destination)
    with calling("clCreateCommandQueue"):
        queue = cl.CommandQueue(unit.context, unit.handle)
    finish: Named = ("clFinish", (int(queue.int_ptr),))
    named = [
        call for ends in (there, there[::-1]) for call in (_move(queue, *ends, copy.size), finish)
    ]
    return iterated(named, 2, queue, there)


def _move(
    queue: cl.CommandQueue, source: OpenCLBuffer, destination: OpenCLBuffer, size: int
) -> Named:
    """The function and its arguments that enqueue a copy and do not wait for it."""
    at = int(queue.int_ptr)
    if source.memory.is_device and destination.memory.is_device:
        both = int(source.for_copy(size).int_ptr), int(destination.for_copy(size).int_ptr)
        return "clEnqueueCopyBuffer", (at, *both, 0, 0, size, *NO_EVENTS)
    name, device, host = "clEnqueueReadBuffer", source, destination
    if destination.memory.is_device:
        name, device, host = "clEnqueueWriteBuffer", destination, source
    place = ctypes.addressof(host.for_copy(size))
    return name, (at, int(device.for_copy(size).int_ptr), 0, 0, size, place, *NO_EVENTS)

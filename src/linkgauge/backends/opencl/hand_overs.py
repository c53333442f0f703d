"""What it takes the host to hand work over to a device and to hear that it is done."""

from __future__ import annotations

import ctypes

import pyopencl as cl

from linkgauge.backends.iterations import IteratedGroup
from linkgauge.backends.rules import lacking
from linkgauge.model.operation import OperationName

from .library import NO_EVENTS, Named, iterated
from .runtime import OpenCLDevice, calling


def hand_over(unit: OpenCLDevice, operation: OperationName) -> IteratedGroup:
    """The calls of a launch of a kernel that does nothing, or of waiting for an idle queue; an
    iteration is one latency. Raises Unsupported for another operation."""
    if operation not in ("launch", "sync"):
        raise lacking("opencl", operation)
    with calling("clCreateCommandQueue"):
        queue = cl.CommandQueue(unit.context, unit.handle)
    at = int(queue.int_ptr)
    finish: Named = ("clFinish", (at,))
    if operation == "sync":
        return iterated([finish], 1, queue)
    kernel, one = unit.kernel("nothing", file="nothing"), ctypes.c_size_t(1)
    size = ctypes.addressof(one)
    words = at, int(kernel.int_ptr), 1, 0, size, size, *NO_EVENTS
    return iterated([("clEnqueueNDRangeKernel", words), finish], 1, queue, kernel, one)

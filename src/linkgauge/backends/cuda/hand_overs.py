"""What it takes the host to hand work over to a device and to hear that it is done."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from typing import Any

from linkgauge import _native
from linkgauge.backends.iterations import IteratedGroup
from linkgauge.model.errors import BackendError, TookTooLong
from linkgauge.model.operation import HandOver

from . import flags
from .device import CudaDevice, Launch
from .enqueuing import address_of
from .memory import pinned_words

_AWAIT = "doorbell"
_Named = tuple[str, Sequence[int]]
"""A function of the driver, or `_AWAIT`, and its arguments."""


def hand_over(device: CudaDevice, operation: HandOver) -> IteratedGroup:
    """The calls of one of the operations on a stream of its own device, each iteration from before
    the first until after the last; one is one latency."""
    made = ExitStack()
    try:
        named = list(_CALLS[operation](device, made))
    except BaseException:
        made.close()
        raise
    calls = [
        (_native.AWAIT_WORD if name == _AWAIT else address_of(name), words) for name, words in named
    ]

    def error_of(status: int, failed: int) -> BackendError:
        name, driver = named[failed][0], device.driver
        if name == _AWAIT:
            return TookTooLong(name, f"no store by cuda:{device.index} within {flags.LIMIT:g} s")
        return driver.error(name, driver.enums.CUresult(status))

    return IteratedGroup(calls, 1, error_of, lambda count: device.enter(), made)


def _sync(device: CudaDevice, made: ExitStack) -> Iterator[_Named]:
    """On a stream that has nothing to do."""
    yield "cuStreamSynchronize", (int(device.stream(0)),)


def _launch(device: CudaDevice, made: ExitStack) -> Iterator[_Named]:
    """A kernel that does nothing, and its end."""
    launch = _loaded(device, made, "nothing")
    yield "cuLaunchKernel", launch.words(device.stream(0))
    yield from _sync(device, made)


def _event(device: CudaDevice, made: ExitStack) -> Iterator[_Named]:
    """An event recorded on a stream that has nothing to do, and waited for."""
    untimed = device.driver.enums.CUevent_flags.CU_EVENT_DISABLE_TIMING
    event = device.call("cuEventCreate", untimed)
    made.callback(_released, device, "cuEventDestroy", event)
    yield "cuEventRecord", (int(event), int(device.stream(0)))
    yield "cuEventSynchronize", (int(event),)


def _graph_launch(device: CudaDevice, made: ExitStack) -> Iterator[_Named]:
    """A graph of a kernel that does nothing, and its end."""
    call, stream = device.driver.call, device.stream(0)
    launch = _loaded(device, made, "nothing")
    modes = device.driver.enums.CUstreamCaptureMode
    call("cuStreamBeginCapture", stream, modes.CU_STREAM_CAPTURE_MODE_RELAXED)
    try:
        launch.enqueue(stream)
    finally:  # else whoever uses the stream next is captured
        graph = call("cuStreamEndCapture", stream)
    made.callback(_released, device, "cuGraphDestroy", graph)
    ready = call("cuGraphInstantiate", graph, 0)
    made.callback(_released, device, "cuGraphExecDestroy", ready)
    yield "cuGraphLaunch", (int(ready), int(stream))
    yield from _sync(device, made)


def _doorbell(device: CudaDevice, made: ExitStack) -> Iterator[_Named]:
    """A kernel that stores a number in the host's memory, until the host sees it there."""
    words = pinned_words(device, ctypes.c_uint64, 1)
    word = ctypes.addressof(words)
    made.callback(_released, device, "cuMemFreeHost", word)
    launch = _loaded(device, made, "answer", word, None)
    words[0] = 0
    yield "cuLaunchKernel", launch.words(device.stream(0))
    # The number that is waited for is the next launch's argument.
    yield _AWAIT, (word, ctypes.addressof(launch.varying), int(flags.LIMIT * 1e9))


_CALLS: Mapping[HandOver, Callable[[CudaDevice, ExitStack], Iterator[_Named]]] = {
    "launch": _launch,
    "sync": _sync,
    "event": _event,
    "graph-launch": _graph_launch,
    "doorbell": _doorbell,
}


def _loaded(device: CudaDevice, made: ExitStack, kernel: str, *arguments: int | None) -> Launch:
    """A launch of a kernel that is loaded, as it is when it first runs: a capture does not allow
    that. Its arguments are there until all is closed."""
    launch = Launch(device, device.kernel("flags", kernel), (1, 1), arguments)
    made.callback(lambda: launch)
    device.enter()
    launch.enqueue(device.stream(0))
    device.call("cuStreamSynchronize", device.stream(0))
    return launch


def _released(device: CudaDevice, call: str, what: Any) -> None:
    """Once the stream is done with it."""
    with suppress(BackendError):  # a lost device has already been reported
        device.call("cuStreamSynchronize", device.stream(0))
        device.driver.call(call, what)

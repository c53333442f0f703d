"""Copies there and back by a copy engine, each waited for by the host."""

from __future__ import annotations

from linkgauge.backends.iterations import Call, IteratedGroup
from linkgauge.model.errors import BackendError

from .device import CudaDevice
from .enqueuing import address_of

_NAMES = ("cuMemcpyAsync", "cuStreamSynchronize") * 2


def ping_pong(device: CudaDevice, source: int, destination: int, size: int) -> IteratedGroup:
    """The two calls of a copy, and those of the one back."""
    stream = int(device.stream(0))

    def calls(into: int, of: int) -> tuple[Call, Call]:
        move = address_of(_NAMES[0]), (into, of, size, stream)
        return move, (address_of(_NAMES[1]), (stream,))

    def error_of(status: int, failed: int) -> BackendError:
        driver = device.driver
        return driver.error(_NAMES[failed], driver.enums.CUresult(status))

    back = calls(source, destination)
    there = calls(destination, source)
    return IteratedGroup((*there, *back), 2, error_of, lambda count: device.enter())

"""Groups whose iterations are timed one by one."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from linkgauge.backends.protocol import Copy, Group
from linkgauge.backends.rules import check_copy_engine, check_flags
from linkgauge.model.memory import Memory
from linkgauge.model.operation import HAND_OVERS, OperationName

from .copy_ping_pong import ping_pong
from .device import CudaDevice
from .flags import device_flags, host_flags
from .hand_overs import hand_over
from .load import loaded
from .memory import address_in


def iterated(
    devices: Sequence[CudaDevice], copies: Sequence[Copy], operation: OperationName
) -> Group:
    """The group of the first copy's operation, over connected devices; the other copies load what
    it crosses. Raises Unsupported for a copy that the operation does not take."""

    def device_of(memory: Memory) -> CudaDevice:
        return devices[memory.index or 0]

    return loaded(device_of, _alone(device_of, copies[0], operation), copies[1:])


def _alone(
    device_of: Callable[[Memory], CudaDevice], copy: Copy, operation: OperationName
) -> Group:
    owner = device_of(copy.transfer.engine.owner)
    if operation in HAND_OVERS:
        return hand_over(owner, operation)
    if operation == "copy-ping-pong":
        check_copy_engine(copy)
        return ping_pong(owner, address_in(copy.source), address_in(copy.destination), copy.size)
    source, destination = check_flags(copy)
    if source.is_host:
        return host_flags(device_of(destination), address_in(copy.source))
    ends = address_in(copy.source), address_in(copy.destination)
    return device_flags(device_of(source), device_of(destination), *ends)

"""Pointer chases by one thread of a kernel."""

from __future__ import annotations

from linkgauge.backends.protocol import Pace

from .device import CudaDevice
from .driver import Driver
from .group import CudaGroup
from .launches import chase_launches, link_launch
from .memory import CudaBuffer
from .verify import run
from .work import InPieces

_STRIDE = 128
_ACCESSES = 60_000
"""nvbandwidth's pointer chase: 128 bytes apart, 10^6 accesses in all, divided among the
multiprocessors. A loop here makes this many accesses."""


def chase(driver: Driver, device: CudaDevice, ring: CudaBuffer, size: int) -> CudaGroup:
    """One thread of the device, on each multiprocessor in turn, follows pointers through so many
    bytes of a buffer that it reaches."""
    count = max(1, size // _STRIDE)
    run(ring.home, link_launch(ring.home, ring.address, count, _STRIDE))
    each = max(1, _ACCESSES // device.multiprocessors)
    launches = chase_launches(device, ring.address, count, _STRIDE, each)
    group = CudaGroup(driver, [InPieces(device, [launch.enqueue for launch in launches])])
    group.pace = Pace(loops=1, steps=each * len(launches))
    return group

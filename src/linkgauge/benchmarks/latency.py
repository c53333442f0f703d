"""Latencies that the host sees of what devices do."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import permutations

from linkgauge.model.notation import parse_memory
from linkgauge.model.transfer import Cell, Engine, Memory, Report, Transfer, host
from linkgauge.model.units import LATENCY, format_size

from .gpu import OnDevices
from .table import UNHURRIED, DeviceSet, Sweep

SIZES = tuple(1 << power for power in range(21))
"""Bytes of a copy: 1 B to 1 MiB."""
FEW_SIZES = (*SIZES[::3], SIZES[-1])
"""By factors of 8, and the largest."""


def _paths(fabric: DeviceSet) -> Iterator[tuple[str, Memory, Memory]]:
    """A name, and the ends of a copy by an engine of the second: the host and each device, and
    pairs of devices; of these the first with all others, or all of them in the full profile."""
    memories = [parse_memory(device.memory) for device in fabric.devices]
    for device, memory in zip(fabric.devices, memories, strict=True):
        yield f"host:{device.near}-{memory.label}", host(device.near), memory
    pairs = permutations(memories, 2)
    for one, other in pairs if fabric.full else ((memories[0], m) for m in memories[1:]):
        yield f"{one.label}-{other.label}", other, one


def _sizes(fabric: DeviceSet) -> tuple[int, ...]:
    """Those asked for, if they are copies whose latency counts."""
    asked = tuple(size for size in fabric.sizes if size <= SIZES[-1])
    return asked or (SIZES if fabric.full else FEW_SIZES)


def _ping_pongs(fabric: DeviceSet) -> Iterator[Cell]:
    for name, far, owner in _paths(fabric):
        for size in _sizes(fabric):
            transfer = Transfer(far, owner, Engine(owner, "ce"), size)
            place = name, format_size(size)
            yield Cell(*place, (transfer,), Report.LATENCY, operation="copy-ping-pong")


LATENCY_OF_DEVICES: tuple[Sweep, ...] = (
    OnDevices(
        "latency_copy_pingpong",
        "latency of a copy CE there and back, each waited for by the host, one way, path(row) by "
        "size(column)",
        _ping_pongs,
        LATENCY,
        1,
        "needs a device",
        profiles=UNHURRIED,
    ),
)

"""How bandwidth is shared as more and more copies run at the same time: of several devices, of
disjoint pairs of devices, and over several streams of one device.

The headline is the aggregate; each copy's own rate is measured with it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from linkgauge.model.memory import host
from linkgauge.model.notation import parse_memory
from linkgauge.model.transfer import Cell, Engine, Report, Transfer

from .gpu import OnDevices
from .host_sweeps import thread_counts
from .table import HOST_ROW, DeviceSet, Sweep

MOST_ON_ONE = 16
"""Copies at once on one device."""

Copies = Callable[[DeviceSet], list[Transfer]]


def _to_devices(fabric: DeviceSet) -> list[Transfer]:
    """A copy to each device, from the node near it."""
    ends = [(parse_memory(device.memory), host(device.near)) for device in fabric.devices]
    return [Transfer(near, device, Engine(device, "ce")) for device, near in ends]


def _to_host(fabric: DeviceSet) -> list[Transfer]:
    there = _to_devices(fabric)
    return [Transfer(one.destination, one.source, one.engine) for one in there]


def _in_pairs(fabric: DeviceSet) -> list[Transfer]:
    """Each device takes part once: 0 writes to 1, 2 to 3 and so on."""
    memories = [parse_memory(device.memory) for device in fabric.devices]
    pairs = zip(memories[::2], memories[1::2], strict=False)
    return [Transfer(one, other, Engine(one, "ce")) for one, other in pairs]


def _more_and_more(copies: Copies) -> Callable[[DeviceSet], Iterator[Cell]]:
    """The first of the copies, the first two, the first four … and all of them."""

    def cells(fabric: DeviceSet) -> Iterator[Cell]:
        there = copies(fabric)
        for count in thread_counts(len(there)):
            yield Cell(HOST_ROW, str(count), tuple(there[:count]), Report.TOTAL)

    return cells


def _over_streams(copies: Copies) -> Callable[[DeviceSet], Iterator[Cell]]:
    """Each of the copies once, twice, four times … at the same time, with buffers of their own."""

    def cells(fabric: DeviceSet) -> Iterator[Cell]:
        for copy in copies(fabric):
            for count in thread_counts(MOST_ON_ONE):
                row = copy.engine.owner.label
                yield Cell(row, str(count), (copy,) * count, Report.TOTAL)

    return cells


def _sweep(name: str, title: str, cells: Callable[[DeviceSet], Iterator[Cell]]) -> OnDevices:
    return OnDevices(
        f"concurrency_{name}",
        f"memcpy CE {title}(column) at once, total",
        cells,
        reason="needs two devices" if cells is _PAIRS else "needs a device",
        profiles=("full",),
    )


_PAIRS = _more_and_more(_in_pairs)

CONCURRENCY: tuple[Sweep, ...] = (
    _sweep("host_to_device", "host -> this many devices", _more_and_more(_to_devices)),
    _sweep("device_to_host", "host <- this many devices", _more_and_more(_to_host)),
    _sweep("device_to_device", "device -> device, this many pairs", _PAIRS),
    _sweep(
        "streams_host_to_device",
        "host -> device(row), this many streams",
        _over_streams(_to_devices),
    ),
    _sweep(
        "streams_device_to_host",
        "host <- device(row), this many streams",
        _over_streams(_to_host),
    ),
)

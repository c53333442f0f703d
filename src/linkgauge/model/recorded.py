"""What recorded runs of healthy machines show of each kind of path: how much a new process changes,
and how far off a single figure may be.

The numbers are those of the runs in docs/recordings.md, which `tools/recordings` makes. They stand
in for the machine's own runs, until there are enough of these."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import msgspec

from .transfer import Cell

PathKind = Literal[
    "latency", "host latency", "collectives", "products", "host products", "host memory",
    "host memory by several threads", "host and device", "between devices", "within a device",
]  # fmt: skip
"""A `host latency` is timed or begun by the host; any other latency by a device alone. `host
products`, and prime numbers, are computed by host threads. One thread is bound by its core, several
by what other users of the host leave of its memory."""


class RecordedKind(msgspec.Struct, frozen=True):
    """What recorded runs show of a kind of path.

    process: The relative standard deviation of what only a new process changes: of runs, less what
        their repetitions explain. The median over the figures of the kind.
    runs: The relative standard deviation of runs, of the figure that varies most. It stands in for
        the range of a figure without one.
    furthest: How far the furthest figure of a healthy run was from the median of its set, as a
        fraction."""

    process: float
    runs: float
    furthest: float


RECORDED: Mapping[PathKind, RecordedKind] = {
    "latency": RecordedKind(0.0012, 0.004, 0.01),
    "host latency": RecordedKind(0.021, 0.082, 0.16),
    "collectives": RecordedKind(0.002, 0.21, 0.36),
    "products": RecordedKind(0.005, 0.017, 0.02),
    "host products": RecordedKind(0.12, 0.13, 0.28),
    "host memory": RecordedKind(0.026, 0.04, 0.07),
    "host memory by several threads": RecordedKind(0.12, 0.21, 0.33),
    "host and device": RecordedKind(0.001, 0.11, 0.21),
    "between devices": RecordedKind(0.0001, 0.0003, 0.001),
    "within a device": RecordedKind(0.0007, 0.005, 0.007),
}


def path_kind(cell: Cell) -> PathKind:
    """Returns the kind of path of a cell."""
    does = cell.does
    if does.collective is not None:
        return "collectives"
    by_device = any(each.engine.owner.is_device for each in cell.transfers)
    if cell.report.is_latency:
        return "latency" if does.follows_pointers and by_device else "host latency"
    if does.product is not None or not does.in_memory:
        return "products" if by_device else "host products"
    places = {memory.place for each in cell.transfers for memory in each.memories}
    devices = sum(place.is_device for place in places)
    if not devices:
        is_single = [each.engine.count for each in cell.transfers] == [1]
        return "host memory" if is_single else "host memory by several threads"
    if any(place.is_host for place in places):
        return "host and device"
    return "between devices" if devices > 1 else "within a device"


def recorded_kind(cell: Cell) -> RecordedKind:
    return RECORDED[path_kind(cell)]

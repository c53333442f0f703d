"""How much figures of each kind of path vary in runs of healthy machines (docs/recordings.md)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

import msgspec

from .operations.operation import Operation
from .transfer import Cell, Transfer

PathKind = Literal[
    "latency", "host latency", "thread latency", "collectives", "short collectives", "products",
    "host products", "host memory", "host memory by several threads", "pageable and device",
    "host and device", "between devices", "kernels of several devices", "within a device",
]  # fmt: skip
"""The host times or starts a `host latency`. A `thread latency` involves only host threads, any
other latency only a device. `short collectives` have at most `SHORT` bytes. Host threads compute
`host products` and prime numbers. `host memory` is used by one thread, which its core limits.
Other users of the host's memory limit several threads. A host thread copies pageable memory.
`kernels of several devices` copy at once, from or to a third device, which they share unevenly."""
SHORT = 1 << 20
"""The most bytes of a collective whose time is that of its launches."""


class RecordedKind(msgspec.Struct, frozen=True):
    """How much the results of one kind of path vary. `process` is the relative standard deviation
    that a new process adds, `furthest` the largest relative difference between two runs. `alone` is
    true if other users of the host have no influence."""

    process: float
    furthest: float
    alone: bool = False


RECORDED: Mapping[PathKind, RecordedKind] = {
    "latency": RecordedKind(0.0015, 0.012, alone=True),
    "host latency": RecordedKind(0.024, 0.29),
    "thread latency": RecordedKind(0.064, 0.28),
    "collectives": RecordedKind(0.0013, 0.012, alone=True),
    "short collectives": RecordedKind(0.14, 0.41),
    "products": RecordedKind(0.0015, 0.13, alone=True),
    "host products": RecordedKind(0.08, 0.29),
    "host memory": RecordedKind(0.05, 0.23),
    "host memory by several threads": RecordedKind(0.12, 0.39),
    "pageable and device": RecordedKind(0.05, 0.44),
    "host and device": RecordedKind(0.01, 0.2),
    "between devices": RecordedKind(0.0, 0.0015, alone=True),
    "kernels of several devices": RecordedKind(0.018, 0.065, alone=True),
    "within a device": RecordedKind(0.0011, 0.02, alone=True),
}


BetweenRuns = Mapping[PathKind, float]
"""The relative standard deviation of figures between a machine's own runs, by kind of path."""


def path_kind(cell: Cell, size: int | None) -> PathKind:
    return kind_of(cell.transfers, cell.does, size, is_latency=cell.report.is_latency)


def kind_of(
    transfers: Sequence[Transfer], does: Operation, size: int | None, *, is_latency: bool
) -> PathKind:
    if does.collective is not None:
        return "short collectives" if (size or 0) <= SHORT else "collectives"
    by_device = any(each.engine.owner.is_device for each in transfers)
    places = {memory.place for each in transfers for memory in each.memories}
    devices = sum(place.is_device for place in places)
    if is_latency:
        if does.follows_pointers and by_device:
            return "latency"
        return "host latency" if by_device or devices else "thread latency"
    if does.product is not None or not does.in_memory:
        return "products" if by_device else "host products"
    if not devices:
        is_single = [each.engine.count for each in transfers] == [1]
        return "host memory" if is_single else "host memory by several threads"
    if any(place.is_host for place in places):
        kinds = {memory.kind for each in transfers for memory in each.memories}
        return "pageable and device" if "pageable" in kinds else "host and device"
    copying = {each.engine.owner.place for each in transfers if each.engine.kind == "sm"}
    if devices > 2 and len(copying) > 1:
        return "kernels of several devices"
    return "between devices" if devices > 1 else "within a device"


def recorded_kind(cell: Cell, size: int | None) -> RecordedKind:
    return RECORDED[path_kind(cell, size)]

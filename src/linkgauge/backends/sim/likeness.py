"""Finds cells of a simulated machine that differ only in the names of the parts they use."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

from linkgauge.model.hardware.map import Resource
from linkgauge.model.transfer import Transfer

from .resources import Demand


def ways_of(
    transfers: Sequence[Transfer], demands: Sequence[Demand], capacity: Mapping[Resource, float]
) -> Hashable:
    """Returns everything that determines the times of transfers that run together. Parts and
    resources have numbers instead of names, in the order of their first use. `capacity` is the
    limit of each resource in bytes/s."""
    numbers: dict[Any, int] = {}

    def number(name: Any) -> int:
        return numbers.setdefault(name, len(numbers))

    return tuple(
        (
            transfer.engine.kind,
            transfer.engine.count,
            transfer.scale,
            transfer.both_ways,
            transfer.load,
            *(
                (memory.space, memory.kind, number(memory.place))
                for memory in (transfer.source, transfer.destination, transfer.engine.owner)
            ),
            tuple((number(name), weight, capacity[name]) for name, weight in demand.flow.usage),
            demand.flow.cap,
            demand.startup,
            demand.queue and number(demand.queue),
            demand.jitter,
        )
        for transfer, demand in zip(transfers, demands, strict=True)
    )

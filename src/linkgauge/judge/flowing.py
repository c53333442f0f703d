"""How long concurrent transfers take that share what they cross: shares are solved anew whenever
one ends (model/map.py)."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence

import msgspec

from linkgauge.model.map import Flow, share

_DONE = 1e-9
"""Share of a transfer that is left when it has ended: rounding."""


class Load(msgspec.Struct, frozen=True):
    """Bytes that a flow has to bring over; of those with the same `queue`, one after the other."""

    flow: Flow
    bytes: int
    queue: Hashable = None


def finish_times(loads: Sequence[Load], capacity: Sequence[float]) -> tuple[float, ...]:
    """Seconds from the start of all to the end of each; 0 of what nothing bounds."""
    if len(loads) == 1:
        (load,) = loads
        return (load.bytes * max((w / capacity[n] for n, w in load.flow.usage), default=0.0),)
    ends = [0.0] * len(loads)
    left = {number: float(load.bytes) for number, load in enumerate(loads)}
    now = 0.0
    while left:
        turns: dict[Hashable, int] = {}
        for number in left:
            queue = loads[number].queue
            turns.setdefault(number if queue is None else ("queue", queue), number)
        moving = list(turns.values())
        rates = share([loads[number].flow for number in moving], capacity)
        pace = dict(zip(moving, rates, strict=True))
        passed = min(left[number] / rate for number, rate in pace.items())
        now += passed
        for number, rate in pace.items():
            left[number] = 0.0 if rate == math.inf else left[number] - rate * passed
            if left[number] <= _DONE * loads[number].bytes:
                del left[number]
                ends[number] = now
    return tuple(ends)

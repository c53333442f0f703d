"""How flows share what they cross: max-min fairness by progressive filling.

A resource (one direction of a link, a memory) has a capacity; a flow of rate r takes weight × r of
each resource that it uses. All rates rise together until a resource is full, or a flow reaches its
own cap; the flows there stay, the others go on rising. No rate can then be raised without lowering
one that is no greater. Source: D. Bertsekas and R. Gallager, Data Networks, 2nd ed., section 6.5.2.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import msgspec

_SAME = 1 + 1e-12
"""Levels that differ by less are one: sums of floating-point numbers are not exact."""


class Flow(msgspec.Struct, frozen=True, gc=False):
    """`usage` pairs each resource with its weight (> 0): capacity taken for a unit of rate. `cap`
    is the most that the flow itself can do."""

    usage: tuple[tuple[int, float], ...]
    cap: float = math.inf


def share(
    flows: Sequence[Flow], capacity: Sequence[float] | Mapping[int, float]
) -> tuple[float, ...]:
    """Rates of the flows, in their order, in the unit of `capacity` ÷ weight.

    A flow that nothing bounds has an infinite rate. Equal flows are solved as one.
    """
    if not flows:
        return ()
    counts: dict[Flow, int] = {}
    for flow in flows:
        counts[flow] = counts.get(flow, 0) + 1
    rates = _fill(counts, capacity)
    return tuple(rates[flow] for flow in flows)


def _fill(
    counts: Mapping[Flow, int], capacity: Sequence[float] | Mapping[int, float]
) -> dict[Flow, float]:
    """The rate of each distinct flow, of which there are so many."""
    if len(counts) == 1:
        ((flow, count),) = counts.items()
        each = (capacity[resource] / (weight * count) for resource, weight in flow.usage)
        return {flow: min((flow.cap, *each))}
    load: dict[int, float] = {}
    users: dict[int, list[Flow]] = {}
    for flow, count in counts.items():
        for resource, weight in flow.usage:
            load[resource] = load.get(resource, 0.0) + weight * count
            users.setdefault(resource, []).append(flow)
    left = {resource: capacity[resource] for resource in load}
    rates: dict[Flow, float] = {}
    level = 0.0
    while True:
        full = {r: left[r] / load[r] for r in load}
        caps = [flow.cap for flow in counts if flow not in rates]
        level = max(level, min(min(full.values(), default=math.inf), *caps))
        stop = level * _SAME
        halted = {flow for r, at in full.items() if at <= stop for flow in users[r]}
        halted.update(flow for flow in counts if flow.cap <= stop)
        halted = halted - rates.keys()
        rates.update((flow, min(level, flow.cap)) for flow in halted)
        if level == math.inf:
            rates.update((flow, level) for flow in counts if flow not in rates)
        if len(rates) == len(counts):
            return rates
        for flow in halted:
            _settle(flow, counts[flow], rates[flow], left, load)
        for resource in [r for r, at in full.items() if at <= stop]:
            load.pop(resource, None)


def _settle(
    flow: Flow, count: int, rate: float, left: dict[int, float], load: dict[int, float]
) -> None:
    """Takes what the flow uses for good off the resources."""
    for resource, weight in flow.usage:
        left[resource] = max(0.0, left[resource] - weight * count * rate)
        if resource in load:
            load[resource] -= weight * count
            if load[resource] <= weight * 1e-9:
                del load[resource]

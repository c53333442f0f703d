"""Finds shortest routes through the graph of a machine, and the rates of flows that share them:
max-min fair rates by progressive filling (D. Bertsekas and R. Gallager, Data Networks, 2nd ed.,
6.5.2). All rates rise together until a resource is full or a flow reaches its cap."""

from __future__ import annotations

import heapq
import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from operator import attrgetter, itemgetter
from typing import Any, Literal, NamedTuple

import msgspec

Passing = Literal["all", "fabric", "none"]
"""The traffic that a place forwards. `all`: all traffic. `fabric`: only traffic that stays within
its fabric from end to end. `none`: no traffic."""

Routing = Literal["spread", "destination"]
"""How traffic is divided among several shortest paths. `spread`: over all of them, packet by
packet. `destination`: each place sends all traffic for a destination one way, by the destination's
number modulo the number of ways. The forwarding tables of a fat tree do this (E. Zahavi, D-Mod-K
Routing Providing Non-Blocking Traffic for Shift Permutations on Real Life Fat Trees, 2010)."""

_NEAR = ("fabric", "bridge")
"""Kinds of links that cost 1: those of a fabric, and those between the ports of one chip."""
_FAR = 1000
"""Cost of any other link. No fabric is so wide that leaving it would be cheaper."""
_AWAY = 1000_000
"""Cost of the link between an adapter and its network: nothing within a host goes that way."""


class Link(msgspec.Struct, frozen=True):
    name: str
    a: str
    b: str
    kind: str


class Crossing(NamedTuple):
    link: Link
    number: int
    forward: bool
    share: float = 1.0

    @property
    def begin(self) -> str:
        return self.link.a if self.forward else self.link.b

    @property
    def end(self) -> str:
        return self.link.b if self.forward else self.link.a

    @property
    def cost(self) -> int:
        if self.link.kind in _NEAR:
            return 1
        return _AWAY if self.link.kind == "network" else _FAR


_Hops = tuple[Crossing, ...]
_Hop = tuple[Crossing, str, int]
"""A crossing with its end and its cost."""


class Map:
    def __init__(
        self, places: Mapping[str, Passing], links: Iterable[Link], routing: Routing = "spread"
    ) -> None:
        hops, fabric = list[Crossing](), list[Crossing]()
        for number, link in enumerate(links):
            both = Crossing(link, number, True), Crossing(link, number, False)
            hops += both
            fabric += both if link.kind == "fabric" else ()
        dead_ends = {place for place, passing in places.items() if passing != "all"}
        silent = {place for place in dead_ends if places[place] == "none"}
        self._fabric = _Graph(places, fabric, silent)
        is_all = len(fabric) == len(hops) and silent == dead_ends
        self._whole = self._fabric if is_all else _Graph(places, hops, dead_ends)
        self._routing = routing
        self.route, self.cost = cache(self._route), self._whole.cost

    def _route(self, source: str, target: str) -> tuple[Crossing, ...] | None:
        if not {source, target} <= self._whole.adjacent.keys():
            return None
        within = self._fabric.route(source, target, self._routing)
        return within or self._whole.route(source, target, self._routing)


class _Graph:
    def __init__(
        self, places: Iterable[str], hops: Iterable[Crossing], dead_ends: set[str]
    ) -> None:
        self.adjacent: dict[str, list[_Hop]] = {name: [] for name in places}
        for hop in hops:
            self.adjacent[hop.begin].append((hop, hop.end, hop.cost))
        self._dead_ends = set(dead_ends)
        for here, own in self.adjacent.items():
            # A place with one neighbour is on no route between other places.
            if len(set(map(itemgetter(1), own))) < 2:
                self._dead_ends.add(here)
        self.reach = cache(self._reach)
        self._toward = cache(self._find_toward)

    def _reach(self, source: str) -> dict[str, tuple[int, int]]:
        found: dict[str, tuple[int, int]] = {source: (0, 1)}
        queue = [(0, source)]
        while queue:
            cost, here = heapq.heappop(queue)
            if cost > found[here][0]:
                continue
            paths = found[here][1]
            for _, there, more in self.adjacent[here]:
                if there in self._dead_ends:
                    continue
                onward = cost + more
                known = found.get(there)
                if known is None or onward < known[0]:
                    found[there] = (onward, paths)
                    heapq.heappush(queue, (onward, there))
                elif onward == known[0]:
                    found[there] = (onward, known[1] + paths)
        return found

    def cost(self, source: str, target: str) -> int | None:
        before, here, there, after = self._between(source, target)
        found = self._length(here, there)
        if found is None:
            return None
        more: int = sum(map(attrgetter("cost"), (*before, *after)))
        return found[0] + more

    def _between(self, source: str, target: str) -> tuple[_Hops, str, str, _Hops]:
        before, after = _Hops(), _Hops()
        if source != target and len(self.adjacent[source]) == 1:
            ((hop, near, _),) = self.adjacent[source]
            if near == target or near not in self._dead_ends:
                before, source = (hop,), near
        if source != target and len(self.adjacent[target]) == 1:
            ((hop, near, _),) = self.adjacent[target]
            if near == source or near not in self._dead_ends:
                after, target = (hop._replace(forward=not hop.forward),), near
        return before, source, target, after

    def _length(self, source: str, target: str) -> tuple[int, int] | None:
        if source == target:
            return 0, 1
        ahead = self.reach(source)
        if target in ahead:
            return ahead[target]
        least: tuple[int, int] | None = None
        for _, near, last in self.adjacent[target]:
            if near in ahead:
                cost, paths = ahead[near][0] + last, ahead[near][1]
                if least is None or cost < least[0]:
                    least = cost, paths
                elif cost == least[0]:
                    least = cost, least[1] + paths
        return least

    def _find_toward(self, here: str, target: str) -> list[Crossing]:
        back = self.reach(target)
        least, ways = math.inf, list[Crossing]()
        for hop, there, cost in self.adjacent[here]:
            if there in back and (there == target or there not in self._dead_ends):
                total = cost + back[there][0]
                if total < least:
                    least, ways = total, []
                if total == least:
                    ways.append(hop)
        return ways

    def route(
        self, source: str, target: str, routing: Routing = "spread"
    ) -> tuple[Crossing, ...] | None:
        before, begin, end, after = self._between(source, target)
        joined = self._length(begin, end)
        if joined is None:
            return None
        found = list(before)
        if routing == "destination":
            number = _number(target)
            while begin != end:
                ways = self._toward(begin, end)
                found.append(ways[number % len(ways)])
                begin = found[-1].end
        elif begin != end:
            found += self._spread(begin, end, joined[1])
        return (*found, *after)

    def _spread(self, source: str, target: str, paths: int) -> Iterator[Crossing]:
        ahead, back = self.reach(source), self.reach(target)
        seen, open_ends = {source}, [source]
        for here in open_ends:
            for hop in self._toward(here, target):
                yield hop._replace(share=ahead[here][1] * back[hop.end][1] / paths)
                if hop.end not in seen and hop.end != target:
                    seen.add(hop.end)
                    open_ends.append(hop.end)


def _number(place: str) -> int:
    match = re.search(r"\d+", place)
    return int(match[0]) if match else 0


_SAME = 1 + 1e-12
"""The ratio below which two levels are equal, because sums of floating-point numbers are not
exact."""


Resource = Any
"""A resource that can be full. Any hashable value identifies it."""
Capacity = Sequence[float] | Mapping[Resource, float]
"""The capacity of each resource that is in use."""


class Flow(msgspec.Struct, frozen=True, gc=False):
    """A flow of data. `usage` pairs each resource with the capacity that the flow takes per unit of
    rate. `cap` limits the flow's rate."""

    usage: tuple[tuple[Resource, float], ...]
    cap: float = math.inf


def share(flows: Sequence[Flow], capacity: Capacity) -> tuple[float, ...]:
    """Returns the max-min fair rate of each flow; infinite if nothing limits a flow."""
    if not flows:
        return ()
    rates = _fill(Counter(flows), capacity)
    return tuple(map(rates.__getitem__, flows))


def _fill(counts: Mapping[Flow, int], capacity: Capacity) -> dict[Flow, float]:
    if len(counts) == 1:
        ((flow, count),) = counts.items()
        rate = flow.cap
        for resource, weight in flow.usage:
            rate = min(rate, capacity[resource] / (weight * count))
        return {flow: rate}
    load: dict[Resource, float] = {}
    users: dict[Resource, list[Flow]] = {}
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
    flow: Flow, count: int, rate: float, left: dict[Resource, float], load: dict[Resource, float]
) -> None:
    for resource, weight in flow.usage:
        left[resource] = max(0.0, left[resource] - weight * count * rate)
        if resource in load:
            load[resource] -= weight * count
            if load[resource] <= weight * 1e-9:
                del load[resource]

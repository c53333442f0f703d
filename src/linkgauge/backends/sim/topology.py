"""The graph of a machine, and the routes through it: all shortest paths, used evenly."""

from __future__ import annotations

import heapq
import math
from functools import cache
from typing import NamedTuple

import msgspec

from .hardware import DeviceUnit, Hardware, Link

_OTHER_LINK = 1000
"""Cost of a link that is not a fabric's, which costs 1: a route takes the fewest of the others,
then the fewest of all. No machine has a fabric so wide that it would be cheaper to leave it."""


class Crossing(msgspec.Struct, frozen=True):
    """A link on a route: `forward` is from its a to its b; `share` is the part of the traffic that
    goes over it."""

    link: int
    forward: bool
    share: float


class Route(msgspec.Struct, frozen=True):
    """All shortest paths between two vertices, each with an equal part of the traffic.

    `latency` is seconds that the links add to one access, `jitter` the relative standard deviation
    that they add to a figure; of several paths, the mean.
    """

    crossings: tuple[Crossing, ...]
    latency: float
    jitter: float


class _Hop(NamedTuple):
    """From a place to the one beside it."""

    there: str
    link: int
    forward: bool
    cost: int


class Topology:
    """The graph: nodes and switches pass traffic on, devices only where they are said to."""

    def __init__(self, hardware: Hardware) -> None:
        self._links = hardware.links
        self._beside: dict[str, list[_Hop]] = {name: [] for name in hardware.names}
        for number, link in enumerate(hardware.links):
            self._beside[link.a].append(_Hop(link.b, number, True, _cost(link)))
            self._beside[link.b].append(_Hop(link.a, number, False, _cost(link)))
        self._dead_ends = {d.name for d in hardware.devices if not d.group.forwards}
        # A switch has many devices beside it, of which a route needs one: its target.
        self._onward = {
            here: [hop for hop in hops if hop.there not in self._dead_ends]
            for here, hops in self._beside.items()
        }
        self._nodes = hardware.nodes
        self.route = cache(self._route)
        self._reach = cache(self._shortest)

    def nearest_node(self, place: str) -> int:
        """The host node that is closest, of several the first; 0 where none can be reached."""
        away = self._reach(place)
        return min(
            (node for node in self._nodes if node.name in away),
            key=lambda node: away[node.name][0],
            default=self._nodes[0],
        ).index

    def node_of(self, device: DeviceUnit) -> int:
        """The node that sysfs names for a device: what its description says, else the nearest."""
        said = device.group.numa_node
        return self.nearest_node(device.name) if said is None else said

    def _shortest(self, source: str) -> dict[str, tuple[int, int]]:
        """Cost of the shortest paths from `source` to each vertex, and how many there are."""
        found: dict[str, tuple[int, int]] = {source: (0, 1)}
        queue = [(0, source)]
        while queue:
            cost, here = heapq.heappop(queue)
            if cost > found[here][0] or (here in self._dead_ends and here != source):
                continue
            paths = found[here][1]
            for hop in self._beside[here]:
                onward = cost + hop.cost
                known = found.get(hop.there)
                if known is None or onward < known[0]:
                    found[hop.there] = (onward, paths)
                    heapq.heappush(queue, (onward, hop.there))
                elif onward == known[0]:
                    found[hop.there] = (onward, known[1] + paths)
        return found

    def _route(self, source: str, target: str) -> Route | None:
        """The route, None where there is no path. From a place to itself it crosses nothing."""
        ahead, back = self._reach(source), self._reach(target)
        if target not in ahead:
            return None
        length, paths = ahead[target]
        crossings: list[Crossing] = []
        seen, open_ends = {source}, [source]
        for here in open_ends:
            hops = self._onward[here]
            if target in self._dead_ends:
                hops = hops + [hop for hop in self._beside[here] if hop.there == target]
            for hop in hops:
                rest = back.get(hop.there)
                if rest is None or ahead[here][0] + hop.cost + rest[0] != length:
                    continue
                part = ahead[here][1] * rest[1] / paths
                crossings.append(Crossing(hop.link, hop.forward, part))
                if hop.there not in seen and hop.there != target:
                    seen.add(hop.there)
                    open_ends.append(hop.there)
        kinds = [(self._links[crossing.link].kind, crossing.share) for crossing in crossings]
        return Route(
            tuple(crossings),
            sum(kind.latency * part for kind, part in kinds),
            math.sqrt(sum(kind.jitter**2 * part for kind, part in kinds)),
        )


def _cost(link: Link) -> int:
    return 1 if link.kind.kind == "fabric" else _OTHER_LINK

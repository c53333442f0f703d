"""The map of a simulated machine, and the latency and jitter that links add to a route."""

from __future__ import annotations

import math
from functools import cache

import msgspec

from linkgauge.model.map import Crossing, Map, Passing

from .hardware import DeviceUnit, Hardware


class Route(msgspec.Struct, frozen=True):
    """The route between two places. `latency` is the seconds that its links add to one access,
    `jitter` the relative standard deviation that they add to a figure; of several paths, the mean.
    """

    crossings: tuple[Crossing, ...]
    latency: float
    jitter: float


class Topology:
    """Nodes and switches forward traffic; devices do so only within their fabric, and only if
    described as forwarding."""

    def __init__(self, hardware: Hardware) -> None:
        places: dict[str, Passing] = dict.fromkeys(hardware.names, "all")
        for device in hardware.devices:
            places[device.name] = "fabric" if device.group.forwards else "none"
        self._links = hardware.links
        self._nodes = hardware.nodes
        self._map = Map(places, hardware.links, hardware.routing)
        self.route = cache(self._route)

    def nearest_node(self, place: str) -> int:
        """The closest host node, the first of equally close ones; 0 if none can be reached."""
        costs = ((self._map.cost(place, node.name), node.index) for node in self._nodes)
        reached = (found for found in costs if found[0] is not None)
        return min(reached, default=(0, self._nodes[0].index))[1]

    def node_of(self, device: DeviceUnit) -> int:
        """The node that sysfs names for a device: the one in its description, else the nearest."""
        said = device.group.numa_node
        return self.nearest_node(device.name) if said is None else said

    def joins(self, one: int, other: int) -> bool:
        """Whether links lead from one host node to the other."""
        return self.route(f"host:{one}", f"host:{other}") is not None

    def _route(self, source: str, target: str) -> Route | None:
        """None if there is no path. A route from a place to itself crosses nothing."""
        crossings = self._map.route(source, target)
        if crossings is None:
            return None
        kinds = [(self._links[crossing.number].common, crossing.share) for crossing in crossings]
        return Route(
            crossings,
            sum(kind.latency * part for kind, part in kinds),
            math.sqrt(sum(kind.jitter**2 * part for kind, part in kinds)),
        )

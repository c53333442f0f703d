"""How the parts of a simulated machine are joined: their routes, latencies and jitter."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import pairwise
from operator import attrgetter

import msgspec

from linkgauge.model.hardware.map import Crossing, Map, Passing

from .description import DeviceGroup, SwitchGroup
from .hardware import AdapterUnit, DeviceUnit, Hardware


class Route(msgspec.Struct, frozen=True):
    """A route between two parts, over `crossings` of links. `latency` (seconds) and `jitter`
    (relative standard deviation) are its totals. If it joins devices or adapters, `through` names
    the NUMA nodes whose root complexes it crosses. `leaves` is true if it crosses a network."""

    crossings: tuple[Crossing, ...]
    latency: float
    jitter: float
    through: frozenset[str] = frozenset()
    leaves: bool = False


class SimTopology:
    """Finds the routes between the parts of a simulated machine."""

    def __init__(self, hardware: Hardware) -> None:
        places: dict[str, Passing] = dict.fromkeys(hardware.names, "all")
        self._devices: dict[str, DeviceGroup] = {}
        for device in hardware.devices:
            places[device.name] = "fabric" if device.group.forwards else "none"
            self._devices[device.name] = device.group
        self._adapters = set(map(attrgetter("name"), hardware.adapters))
        self._gpudirect = hardware.description.host.gpudirect
        self._links = hardware.links
        self._nodes = hardware.nodes
        self._switches: dict[str, SwitchGroup] = {}
        self._fabrics: list[str] = []
        self._network: set[str] = set()
        self._roots = set(map(attrgetter("name"), hardware.nodes))
        for switch in hardware.switches:
            match switch.group.kind:
                case "pcie":
                    self._switches[switch.name] = switch.group
                case "fabric":
                    self._fabrics.append(switch.name)
                case "network":
                    self._network.add(switch.name)
                case "root":
                    self._roots.add(switch.name)
        self._direct = Counter[tuple[str, str]]()
        for link in hardware.links:
            self._direct[link.a, link.b] += link.common.count
        self._map = Map(places, hardware.links, hardware.description.routing)
        self.route = cache(self._route)

    def nearest_node(self, place: str) -> int:
        """Returns the first of the nodes nearest to a part; 0 if it is not linked to any node."""
        # From the few to the many, as the paths from a place are searched once.
        least, nearest = math.inf, self._nodes[0].index
        for node in self._nodes:
            cost = self._map.cost(node.name, place)
            if cost is not None and cost < least:
                least, nearest = cost, node.index
        return nearest

    def node_of(self, device: DeviceUnit | AdapterUnit) -> int:
        """Returns the NUMA node that sysfs shows: the described one, or else the nearest."""
        said = device.group.numa_node
        return self.nearest_node(device.name) if said is None else said

    def leaves(self, one: str, other: str) -> bool:
        """Whether traffic between two parts crosses a network, from one adapter to another."""
        route = self.route(one, other)
        return route is not None and route.leaves

    def _route(self, source: str, target: str) -> Route | None:
        crossings = self._map.route(source, target)
        if crossings is None:
            return None
        peers = source != target and {source, target} <= self._devices.keys() | self._adapters
        for crossing in crossings:
            ends = crossing.begin, crossing.end
            if crossing.link.kind == "network" and not self._adapters.isdisjoint(ends):
                return self._across(source, target, crossings)
        # With ACS, routes between devices turn at the root complex, not at a PCIe switch.
        if peers and (root := self._redirected(crossings)) is not None:
            crossings = tuple(
                crossing
                for way in ((source, root), (root, target))
                for crossing in self._map.route(*way) or ()
            )
        through = frozenset[str]()
        if peers and any(crossing.end in self._roots for crossing in crossings):
            through = frozenset(f"host:{self.nearest_node(end)}" for end in (source, target))
        return self._over(crossings, through)

    def _across(self, source: str, target: str, crossings: Sequence[Crossing]) -> Route:
        found, through = list[Crossing](), frozenset[str]()
        for crossing in crossings:
            ends = {crossing.begin, crossing.end}
            if crossing.link.kind == "network" or ends <= self._network:
                found.append(crossing)
            for adapter in ends & self._adapters if crossing.link.kind == "network" else ():
                leaves = adapter == crossing.begin
                way = (source, adapter) if leaves else (adapter, target)
                for route in self._beside(*way) if way[0] != way[1] else ():
                    for each in route.crossings:
                        found.append(each._replace(share=each.share * crossing.share))
                    through |= route.through
        return self._over(found, through, leaves=True)

    def _beside(self, begin: str, end: str) -> Iterator[Route]:
        # Without GPUDirect, traffic between device and adapter passes their node's memory.
        devices = {begin, end} & self._devices.keys()
        stops = () if self._gpudirect or not devices else (self.nearest_node(*devices),)
        for pair in pairwise((begin, *(f"host:{node}" for node in stops), end)):
            if (route := self.route(*pair)) is not None:
                yield route

    def _over(
        self, crossings: Sequence[Crossing], through: frozenset[str], *, leaves: bool = False
    ) -> Route:
        latency = variance = 0.0
        for crossing in crossings:
            kind = self._links[crossing.number].common
            latency += kind.latency * crossing.share
            variance += kind.jitter**2 * crossing.share
        return Route(tuple(crossings), latency, math.sqrt(variance), through, leaves)

    def _redirected(self, crossings: Sequence[Crossing]) -> str | None:
        passed = [crossing.end for crossing in crossings[:-1]]
        switches = [place for place in passed if place in self._switches]
        if not switches or len(switches) < len(passed):
            return None

        def to_host(place: str) -> Sequence[Crossing]:
            return self._map.route(place, f"host:{self.nearest_node(place)}") or ()

        turn = min(switches, key=lambda place: len(to_host(place)))
        above = (crossing.end for crossing in to_host(turn) if crossing.end in self._roots)
        return next(above, None) if self._switches[turn].acs_redirect else None

    def to_switches(self, device: str) -> Route | None:
        """Returns a route evenly over all fabric switches next to a device, or None without any."""
        found = [
            crossing
            for name in self._fabrics
            for crossing in self._map.route(device, name) or ()
            if crossing.begin == device and crossing.end == name
        ]
        if not found:
            return None
        kind = self._links[found[0].number].common
        each = (crossing._replace(share=1 / len(found)) for crossing in found)
        return Route(tuple(each), kind.latency, kind.jitter)

    def in_one_fabric(self, devices: Sequence[str]) -> bool:
        routes = [self.to_switches(device) for device in devices]
        ends = [{each.end for each in route.crossings} if route else set() for route in routes]
        return bool(ends) and bool(set.intersection(*ends))

    def links(self, one: str, other: str) -> int:
        return self._direct[one, other] + self._direct[other, one]

    def reaches(self, owner: str, other: str) -> bool:
        """Whether device `owner` can access `other`'s memory: over a network, by GPUDirect only."""
        allowed = {self._devices[one].peer_access for one in (owner, other)}
        route = self.route(owner, other)
        if route is not None and self.leaves(owner, other):
            return self._gpudirect
        if "none" in allowed or route is None:
            return False
        over_fabric = all(crossing.link.kind == "fabric" for crossing in route.crossings)
        return over_fabric or "fabric" not in allowed

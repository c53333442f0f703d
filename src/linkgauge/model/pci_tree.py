"""The tree that PCI functions form: what lies above a function, and how far two are apart."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from typing import Literal

from .inventory import PciFunction, gaps_of
from .map import Crossing, Link, Map

TopologyClass = Literal["PIX", "PXB", "PHB", "NODE", "SYS"]
"""As `nvidia-smi topo -m` names what lies between two functions: at most one switch, several, a
host bridge, several host bridges of a NUMA node, the link between NUMA nodes."""


_ROOT = "root complex"


class PciTree:
    """Functions by address. Loops among parents, which only garbled data has, end at the first
    function that comes again."""

    def __init__(self, functions: Iterable[PciFunction]) -> None:
        self.functions = {function.address: function for function in functions}

    @cached_property
    def _map(self) -> Map:
        """Each function joined to its parent; those that have none, to what joins root buses. What
        is above the others is unknown."""
        joined = [
            Link(function.address, function.address, function.parent or _ROOT, "pcie")
            for function in self.functions.values()
            if function.parent in (None, *self.functions)
            and not any("parent" in gap.fields for gap in gaps_of(function.unknown))
        ]
        return Map(dict.fromkeys((*self.functions, _ROOT), "all"), joined)

    def above(self, address: str) -> tuple[PciFunction, ...]:
        """The bridges above a function, the closest first; none for an unknown address."""
        found: dict[str, PciFunction] = {}
        function = self.functions.get(address)
        while function and function.parent and function.parent not in (address, *found):
            function = self.functions.get(function.parent)
            if function:
                found[function.address] = function
        return tuple(found.values())

    def distance(self, one: str, other: str) -> int | None:
        """Hops between two functions, as Linux counts them for peer-to-peer traffic
        (`calc_map_type_and_dist` in drivers/pci/p2pdma.c): from each up to the closest bridge
        above both; where there is none, up to what joins their root buses. 0 to itself, 4 below
        one switch, 8 between switches. None where the place of either is unknown."""
        route = self._route(one, other)
        return None if route is None else len(route)

    def topo_class(self, one: str, other: str) -> TopologyClass | None:
        """The class of a path. None to itself, and where a place or, between host bridges, a NUMA
        node is unknown."""
        route = self._route(one, other)
        if not route:
            return None
        # A root bus, which domain and bus number tell, is a host bridge's.
        buses = [hop.link.a.rpartition(":")[0] for hop in route if hop.link.b == _ROOT]
        if not buses:
            # Two steps lead from a device through a switch's downstream to its upstream port.
            up = sum(hop.forward for hop in route)
            return "PIX" if max(up, len(route) - up) <= 2 else "PXB"
        if buses[0] == buses[1]:
            return "PHB"
        nodes = [self.functions[address].numa_node for address in (one, other)]
        if None in nodes:
            return None
        return "NODE" if nodes[0] == nodes[1] else "SYS"

    def _route(self, one: str, other: str) -> tuple[Crossing, ...] | None:
        """None where not all that is above either is known."""
        if any(self._map.route(end, _ROOT) is None for end in (one, other)):
            return None
        return self._map.route(one, other)

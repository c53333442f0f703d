"""The tree of PCI functions: what lies above a function, and how far apart two are."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from typing import Literal

from .inventory import PciFunction
from .map import Crossing, Link, Map

TopologyClass = Literal["PIX", "PXB", "PHB", "NODE", "SYS"]
"""What lies between two functions, as `nvidia-smi topo -m` names it: at most one switch, several, a
host bridge, several host bridges of a NUMA node, the link between NUMA nodes."""


_ROOT = "root complex"


class PciTree:
    """Functions by address. Loops among parents, which occur only in garbled data, end at the first
    repeated function."""

    def __init__(self, functions: Iterable[PciFunction]) -> None:
        self.functions = {function.address: function for function in functions}

    @cached_property
    def _map(self) -> Map:
        """Each function linked to its parent; root functions, to a node that joins the root buses.
        Functions whose parent is unknown are left out."""
        joined = [
            Link(function.address, function.address, function.parent or _ROOT, "pcie")
            for function in self.functions.values()
            if function.parent in (None, *self.functions)
            and not any("parent" in gap.fields for gap in function.unknown)
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
        (`calc_map_type_and_dist` in drivers/pci/p2pdma.c): from each up to the closest bridge above
        both; without one, up to the node that joins their root buses. 0 to itself, 4 below one
        switch, 8 between switches. None if the place of either is unknown."""
        route = self._route(one, other)
        return None if route is None else len(route)

    def topo_class(self, one: str, other: str) -> TopologyClass | None:
        """The class of a path. None to itself, and if a place or, between host bridges, a NUMA node
        is unknown."""
        route = self._route(one, other)
        if not route:
            return None
        # A root bus, identified by domain and bus number, belongs to a host bridge.
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
        """None unless everything above both is known."""
        if any(self._map.route(end, _ROOT) is None for end in (one, other)):
            return None
        return self._map.route(one, other)

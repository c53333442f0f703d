"""The tree that PCI functions form: what lies above a function, and how far two are apart."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from .inventory import PciFunction, gaps_of

TopologyClass = Literal["PIX", "PXB", "PHB", "NODE", "SYS"]
"""As `nvidia-smi topo -m` names what lies between two functions: at most one switch, several, a
host bridge, several host bridges of a NUMA node, the link between NUMA nodes."""


class PciTree:
    """Functions by address. Loops among parents, which only garbled data has, end at the first
    function that comes again."""

    def __init__(self, functions: Iterable[PciFunction]) -> None:
        self.functions = {function.address: function for function in functions}

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
        steps = self._steps(one, other)
        return None if steps is None else sum(steps)

    def topo_class(self, one: str, other: str) -> TopologyClass | None:
        """The class of a path. None to itself, and where a place or, between host bridges, a NUMA
        node is unknown."""
        steps = self._steps(one, other)
        if steps is None or one == other:
            return None
        ours, theirs = self._line(one), self._line(other)
        if ours[-1] == theirs[-1]:
            # Two steps lead from a device through a switch's downstream to its upstream port.
            return "PIX" if max(steps) <= 2 else "PXB"
        # A root bus, which domain and bus number tell, is a host bridge's.
        if ours[-1].rpartition(":")[0] == theirs[-1].rpartition(":")[0]:
            return "PHB"
        nodes = [self.functions[address].numa_node for address in (one, other)]
        if None in nodes:
            return None
        return "NODE" if nodes[0] == nodes[1] else "SYS"

    def _steps(self, one: str, other: str) -> tuple[int, int] | None:
        """Hops from each function up to where their ways meet."""
        if not (self._placed(one) and self._placed(other)):
            return None
        ours, theirs = self._line(one), self._line(other)
        for steps, address in enumerate(ours):
            if address in theirs:
                return steps, theirs.index(address)
        return len(ours), len(theirs)

    def _line(self, address: str) -> list[str]:
        """The function and all that is above it."""
        return [address, *(function.address for function in self.above(address))]

    def _placed(self, address: str) -> bool:
        """Whether all that is above the function is known."""
        if address not in self.functions:
            return False
        line = [self.functions[step] for step in self._line(address)]
        return line[-1].parent is None and not any(
            "parent" in gap.fields for function in line for gap in gaps_of(function.unknown)
        )

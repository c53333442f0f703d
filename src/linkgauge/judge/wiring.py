"""What each transfer touches: its memories, and the links between them, as the inventory tells.

All shortest ways count: the fewest links that are not a fabric's, then the fewest links, as drivers
route. A part's name is the memory's notation, `sim:0-sim:1` of a fabric's link,
`PCIe link of sim:0`, `PCIe switch 0000:04:00.0` (its upstream port), or `host bridge 0000:00`.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterator
from functools import cache

import msgspec

from linkgauge.model.inventory import Accelerator, PciFunction
from linkgauge.model.transfer import Transfer

from .findings import Evidence

_OTHER = 1000
"""Cost of a link that is not a fabric's, which costs 1."""


class _Hop(msgspec.Struct, frozen=True):
    there: str
    part: str
    kind: str
    cost: int


class Touched(msgspec.Struct, frozen=True):
    """The parts that transfers touch. Transfers of the same `sort` take ways of the same kinds:
    they should be equally fast."""

    parts: frozenset[str]
    sort: tuple[str, ...]


class Wiring:
    """The graph of memories, switches and bridges."""

    def __init__(self, evidence: Evidence) -> None:
        self._evidence = evidence
        self._beside: dict[str, dict[str, _Hop]] = {}
        self._ways: dict[str, dict[str, int]] = {}
        self._known: dict[Transfer, Touched] = {}
        self._between = cache(self._find_between)
        self._models = {device.memory: device.model for device in evidence.devices}
        self._near = {device.memory: f"host:{device.near}" for device in evidence.devices}
        for device in evidence.devices:
            accelerator = evidence.accelerators.get(device.memory)
            to_host = self._join_fabric(accelerator) if accelerator else False
            function = evidence.functions.get(evidence.addresses.get(device.memory, ""))
            # A device has one way to the host: its own fabric's, where that leads there.
            if not to_host:
                self._join_pci(device.memory, function, device.near)
        # Nodes are alike if they have as many CPUs and roughly as much memory.
        self._nodes = {
            f"host:{node.index}": f"{len(node.cpus)} {round(math.log2(node.memory_total or 1))}"
            for node in evidence.before.host.nodes
        }
        nodes = list(self._nodes)
        for place, one in enumerate(nodes):
            for other in nodes[place + 1 :]:
                self._join(one, other, f"{one}-{other}", f"socket {self._far(one, other)}", _OTHER)

    def _join(self, one: str, other: str, part: str, kind: str, cost: int) -> None:
        for here, there in ((one, other), (other, one)):
            self._beside.setdefault(here, {}).setdefault(there, _Hop(there, part, kind, cost))

    def _far(self, one: str, other: str) -> int | None:
        """The kernel's distance of two nodes."""
        here, there = (int(name.rpartition(":")[2]) for name in (one, other))
        distances = self._evidence.inventory.host.distances
        # A row has a column for each node that is online, whatever their numbers.
        row = dict(zip(sorted(distances), distances.get(here, ()), strict=False))
        return row.get(there)

    def _join_fabric(self, accelerator: Accelerator) -> bool:
        """Whether one of its links leads to the host."""
        here, to_host = accelerator.memory, False
        rates: dict[str, float] = {}
        # A link that is down may not say where it led.
        links = [link for link in accelerator.links if link.remote or link.active is not False]
        for link in links:
            there = link.remote or f"{link.kind} switch"
            rates[there] = rates.get(there, 0.0) + (link.rate or 0.0)
        for link in links:
            there = link.remote or f"{link.kind} switch"
            node = there.startswith("host:")
            to_host |= node
            kind = f"{link.kind} {rates[there]:.3g}"
            self._join(here, there, link_name(here, there), kind, _OTHER if node else 1)
        return to_host

    def _join_pci(self, memory: str, function: PciFunction | None, near: int) -> None:
        """Up to the host bridge, by the links that function and bridges above it have."""
        here, name, host = memory, memory, f"host:{near}"
        if function is None:
            self._join(memory, host, f"link of {memory}", "link", _OTHER)
            return
        for below, above in self._links_up(function):
            there = above.address if above else host
            speed, width = below.link.max_speed, below.link.max_width
            self._join(here, there, pcie_name(name), f"PCIe {speed} x{width}", _OTHER)
            here = name = there
        if here != host:
            self._join(here, host, bridge_name(here), "host bridge", 1)

    def _links_up(self, function: PciFunction) -> Iterator[tuple[PciFunction, PciFunction | None]]:
        """A function and the switch (its upstream port) or the root port that its link leads to,
        and so on from there."""
        functions, here = self._evidence.functions, function
        for _ in range(len(functions)):
            above = functions.get(here.parent or "")
            if above is not None and above.port == "downstream port":
                above = functions.get(above.parent or "", above)
            yield here, above
            if above is None or above.port != "upstream port":
                return
            here = above

    def touched(self, transfer: Transfer) -> Touched:
        if transfer not in self._known:
            self._known[transfer] = self._touched(transfer)
        return self._known[transfer]

    def _touched(self, transfer: Transfer) -> Touched:
        ends = [str(memory.place) for memory in transfer.memories]
        owner = str(transfer.engine.owner)
        parts = {*ends, owner}
        sort: list[str] = [transfer.engine.kind]
        pairs = {(ends[0], ends[-1]), *((end, owner) for end in ends if len(ends) == 1)}
        for one, other in sorted(pairs):
            on_way, kinds = self._between(one, other)
            parts |= on_way
            sort += kinds
        sort += [self._models[end] for end in ends if end in self._models]
        sort += [self._nodes[end] for end in sorted({*ends, owner}) if end in self._nodes]
        remote = any(self._near.get(one, other) != other for one in ends for other in ends
                     if other.startswith("host:"))  # fmt: skip
        return Touched(frozenset(parts), (*sort, "remote" if remote else "near"))

    def _find_between(self, one: str, other: str) -> tuple[set[str], list[str]]:
        """The parts on all shortest ways, and of which kinds they are, in their number."""
        if one == other:
            return set(), ["local"]
        ahead, back = self._reach(one), self._reach(other)
        length = ahead.get(other)
        if length is None:
            return set(), ["unknown"]
        parts: set[str] = set()
        kinds: list[str] = []
        for here, cost in ahead.items():
            if cost + back.get(here, length + 1) != length:
                continue
            for hop in self._beside.get(here, {}).values():
                if hop.there in back and cost + hop.cost + back[hop.there] == length:
                    parts.add(hop.part)
                    kinds.append(hop.kind)
            if here not in (one, other):
                parts |= self._switch(here)
        return parts, sorted(kinds)

    def joints(self) -> Iterator[tuple[str, frozenset[str]]]:
        """The switches and host bridges, each with the links that meet there."""
        found: dict[str, set[str]] = {}
        ends = {*self._nodes, *(device.memory for device in self._evidence.devices)}
        for place in self._beside.keys() - ends:
            for name in self._switch(place) or {bridge_name(place)}:
                links = {hop.part for hop in self._beside[place].values()}
                found.setdefault(name, set()).update(links - {name})
        return ((name, frozenset(links)) for name, links in found.items())

    def _switch(self, place: str) -> set[str]:
        """What passes traffic on; of a root port, the host bridge is that."""
        function = self._evidence.functions.get(place)
        if function is None:
            return {place}
        return {switch_name(place)} if function.port == "upstream port" else set()

    def _reach(self, source: str) -> dict[str, int]:
        """Cost of the shortest way to each place."""
        if source not in self._ways:
            found = {source: 0}
            queue = [(0, source)]
            while queue:
                cost, here = heapq.heappop(queue)
                for hop in self._beside.get(here, {}).values():
                    if cost == found[here] and cost + hop.cost < found.get(hop.there, 1 << 60):
                        found[hop.there] = cost + hop.cost
                        heapq.heappush(queue, (cost + hop.cost, hop.there))
            self._ways[source] = found
        return self._ways[source]


def pcie_name(lower: str) -> str:
    """A PCIe link's name, by the device at its lower end, or the upstream port's address."""
    return f"PCIe link of {lower}"


def switch_name(upstream: str) -> str:
    """A PCIe switch's name, by the address of its upstream port."""
    return f"PCIe switch {upstream}"


def bridge_name(root_port: str) -> str:
    """A host bridge's name, by its domain and bus: those of a root port's address."""
    return f"host bridge {root_port.rpartition(':')[0]}"


def link_name(one: str, other: str) -> str:
    """A link's name, the same from both ends: devices first, then by index."""
    return "-".join(sorted((one, other), key=_place))


def _place(name: str) -> tuple[bool, str, int]:
    space, _, index = name.rpartition(":")
    is_place = bool(space) and index.isdecimal()
    return (not is_place or space == "host", space or name, int(index) if is_place else 0)

"""How the wiring of a machine is made from its inventory, and which parts each transfer uses."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from itertools import chain, combinations
from operator import attrgetter
from typing import Any, NamedTuple

import msgspec

from linkgauge.model.grouped import Shared, grouped
from linkgauge.model.memory import host as node_memory
from linkgauge.model.notes import STAGED
from linkgauge.model.ranks import nic_ends
from linkgauge.model.transfer import Cell, Engine, Transfer

from .bundles import LinkBundle, bundles
from .host_details import UNREACHABLE
from .inventory import Accelerator, FabricLink, Inventory, PciFunction, PciLink
from .map import Crossing, Link, Map, Passing
from .part import Part, is_memory, is_node
from .pcie import link_rate


class Wire(Link, frozen=True, kw_only=True):
    """A link. Links of equal `grade` should be equally fast. `nominal` is in bytes/s. A PCIe link
    has PCI functions at its ends (`lower`, `upper`)."""

    part: Part
    grade: str = ""
    lower: PciFunction | None = None
    upper: PciFunction | None = None
    device: str | None = None
    reported: PciLink | None = None
    bundle: LinkBundle | None = None
    nominal: float | None = None

    @property
    def best(self) -> float | None:
        """The highest bytes/s of one direction that both ends support, even if the link idles."""
        if self.kind != "pcie":
            return self.nominal
        ends = [end.link for end in (self.lower, self.upper) if end] + [self.reported or PciLink()]
        return min((rate for end in ends if (rate := _rate(end))), default=None)


def _rate(link: PciLink) -> float | None:
    speed, width = link.max_speed or link.speed, link.max_width or link.width
    return link_rate(speed, width) if speed and width else None


class Touched(msgspec.Struct, frozen=True, eq=False):
    """The parts that a transfer uses. Transfers of equal `kinds` should be equally fast. `directed`
    has pairs of a link and whether bytes move from the link's end `a` to its end `b`."""

    parts: frozenset[Part]
    kinds: tuple[str, ...]
    directed: frozenset[tuple[Part, bool]]


class Wired(NamedTuple):
    """The facts that a machine's wiring is made from, by name. `nodes` has CPUs and bytes of
    memory, `devices` model and nearest node, and `endpoints` the PCI addresses of accelerators and
    adapters. `line` returns a PCI function and all bridges above it for an address."""

    known: Inventory
    nodes: Mapping[str, tuple[int, int | None]]
    devices: Mapping[str, tuple[str, int]]
    accelerators: Mapping[str, Accelerator]
    addresses: Mapping[str, str]
    endpoints: Mapping[str, str]
    functions: Mapping[str, PciFunction]
    line: Callable[[str], tuple[PciFunction, ...]]


class Wiring:
    """The graph of a machine's memories, switches and bridges. `switches` names fabric switches."""

    def __init__(self, machine: Wired) -> None:
        self._machine = machine
        self.switches: set[str] = set()
        self._unsure: set[str] = set()  # places that were taken for switches without proof
        self._idle: dict[str, int] = {}  # by device: links that are down and have no known end
        # Accelerators that only PCI shows are listed under their address.
        self._hidden = machine.addresses.keys() & set(machine.addresses.values())
        self._shared = shared = Shared()  # the links of thousands of devices are equivalent
        self._near: dict[str, str] = {}
        for memory in machine.accelerators:
            self._near[memory] = shared(f"host:{self._node(memory)}")
        for name, (_, near) in machine.devices.items():
            self._near[name] = shared(f"host:{near}")
        # Memories of nodes are equivalent if they are roughly as large, and both or neither have
        # CPUs.
        self._nodes: dict[str, str] = {}
        for name, (cpus, size) in machine.nodes.items():
            self._nodes[name] = f"{bool(cpus)} {round(math.log2(size or 1))}"
        self.adapters = machine.endpoints.keys() - machine.addresses.keys()
        found: dict[frozenset[str], Wire] = {}
        for wire in self._wires():
            known = found.setdefault(frozenset((wire.a, wire.b)), wire)
            if wire.bundle and known.bundle and wire.bundle.count < known.bundle.count:
                found[frozenset((wire.a, wire.b))] = wire  # both ends report it
        self.wires = tuple(found.values())
        ends = chain.from_iterable(map(attrgetter("a", "b"), self.wires))
        places = dict[str, Passing]()
        for place in (*self._nodes, *self._near, *ends):
            ours = is_node(place) or place in machine.functions
            places[place] = "all" if ours or not is_memory(place) else "none"
        places |= dict.fromkeys(self._near, "fabric")
        self.map = Map(places, self.wires, machine.known.routing)
        self.route = cache(self._route)
        self.bundles = cache(self._bundles)
        self._between = cache(self._find_between)

    def _node(self, memory: str) -> int:
        function = self._function(memory)
        return (function.numa_node if function else None) or 0

    def _function(self, memory: str) -> PciFunction | None:
        return self._machine.functions.get(self._machine.endpoints.get(memory, ""))

    def _wires(self) -> Iterator[Wire]:
        for memory, host in self._near.items():
            links = list(self._fabric(memory))
            yield from links
            # A device has one path to the host: over its own fabric if that leads there.
            if "internal" not in map(attrgetter("kind"), links):
                yield from self._pcie(memory, host)
        for adapter in sorted(self.adapters):
            if self._function(adapter) is not None:
                yield from self._pcie(adapter, f"host:{self._node(adapter)}")
        yield from self._cables() if self._machine.known.adapters else ()
        for link in self._machine.known.switch_links:
            self.switches |= {link.a, link.b}
            grade = f"{link.kind} {link.count} x {(link.rate or 0) / link.count:.3g}"
            part = Part.link(link.a, link.b)
            yield _wire(part, link.a, link.b, "fabric", grade=grade, nominal=link.rate)
        within = self._machine.known.host.within
        for one, other in combinations(self._nodes, 2):
            ends = int(one.rpartition(":")[2]), int(other.rpartition(":")[2])
            if self.distance(one, other) == UNREACHABLE:
                continue
            grade = f"socket {within.get(ends, self.distance(one, other))}"
            yield _wire(Part.link(one, other), one, other, "socket", grade=grade)

    def distance(self, one: str, other: str) -> int | None:
        here, there = int(one.rpartition(":")[2]), int(other.rpartition(":")[2])
        distances = self._machine.known.host.distances
        # A row has a column for each online node, whatever the nodes' numbers.
        row = dict(zip(sorted(distances), distances.get(here, ()), strict=False))
        return row.get(there)

    def _fabric(self, here: str) -> Iterator[Wire]:
        accelerator = self._machine.accelerators.get(here)
        links: list[FabricLink] = []
        for link in accelerator.links if accelerator else ():
            remote = link.remote
            kind, _, address = (remote or "").partition(" ")
            if kind == "device":
                remote = f"gpu {address}" if address in self._hidden else None
            elif remote == "gpu" and self._hidden:
                remote = f"gpu beside {here}"
            links.append(msgspec.structs.replace(link, remote=remote))
        for remote, bundle in bundles(links).items():
            if remote is None and not bundle.count:
                self._idle[here] = bundle.all
                continue
            there = remote or f"{bundle.kind} switch"
            if remote is None:
                self._unsure.add(there)
            if not is_memory(there):
                self.switches.add(there)
            kind = "internal" if is_node(there) else "fabric"
            grade = self._shared(f"{bundle.kind} {bundle.nominal:.3g}")
            bundle = self._shared(bundle)  # noqa: PLW2901
            yield _wire(
                Part.link(here, there), here, there, kind, grade=grade, bundle=bundle,
                nominal=bundle.nominal or None,
            )  # fmt: skip

    def _cables(self) -> Iterator[Wire]:
        known = grouped(
            ((one.device, one.leads_to), one)
            for one in self._machine.known.adapters
            if one.leads_to
        )
        for (here, there), ports in known.items():
            if there not in self.adapters:
                self.switches.add(there)
            rates = [port.rate or 0.0 for port in ports]
            kind = ports[0].link_layer or "network"
            of = len(ports), len(ports), sum(rates), kind, rates[0], sum(rates)
            yield _wire(
                Part.link(here, there), here, there, "network", bundle=LinkBundle(*of),
                grade=f"{kind} {sum(rates):.3g}", nominal=sum(rates) or None,
            )  # fmt: skip

    def _pcie(self, memory: str, host: str) -> Iterator[Wire]:
        function = self._function(memory)
        accelerator = self._machine.accelerators.get(memory)
        reported = accelerator.link if accelerator else None
        if function is None:
            yield _wire(
                Part.hidden_link(memory), memory, host, "pcie", grade="link", device=memory,
                reported=reported,
            )  # fmt: skip
            return
        line = self._machine.line(function.address)
        here = memory
        for lower, upper in zip(line, (*line[1:], None), strict=True):
            there = upper.address if upper else host
            own = memory if here == memory and memory in self._near else None
            if upper is not None and lower.port == "downstream port":
                yield _wire(Part.pcie_switch(there), here, there, "bridge")
            elif upper is None and here != memory and lower.port != "upstream port":
                yield _wire(Part.host_bridge(here), here, there, "bridge", grade="host bridge")
            else:
                yield _wire(
                    Part.pcie_link(here, lower.address),
                    here,
                    there,
                    "pcie",
                    grade=f"PCIe {lower.link.max_speed} x{lower.link.max_width}",
                    lower=lower,
                    upper=upper,
                    device=own,
                    reported=reported if own else None,
                )
            here = there

    def _route(self, begin: str, end: str) -> list[tuple[Wire, Crossing]] | None:
        route = self.map.route(begin, end)
        return None if route is None else [(self.wires[each.number], each) for each in route]

    def is_unsure(self, begin: str, end: str) -> bool:
        """Whether the route passes a switch that is assumed where links report no remote end."""
        crossed = self.route(begin, end) if self._unsure else None
        return any({wire.a, wire.b} & self._unsure for wire, _ in crossed or ())

    def leaves(self, begin: str, end: str) -> bool:
        return any(wire.kind == "network" for wire, _ in self.route(begin, end) or ())

    def _bundles(self, begin: str, end: str) -> dict[tuple[str, str], LinkBundle]:
        passed = set[str]()
        found: dict[tuple[str, str], list[LinkBundle]] = {}
        for wire, crossing in self.route(begin, end) or ():
            passed.add(crossing.end)
            if wire.bundle is not None:
                ends = [
                    "switch" if place in self.switches else place
                    for place in (crossing.begin, crossing.end)
                ]
                found.setdefault((ends[0], ends[1]), []).append(wire.bundle)
        passed -= {begin, end}
        passed -= self.switches
        if self.leaves(begin, end):
            passed &= self._near.keys()  # adapters reach the memory at each end by themselves
        if not found or (passed and not any(map(is_node, (begin, end)))):
            return {}
        return {
            ends: LinkBundle.joined(
                many, sum(self._idle.get(e, 0) for e in ends if "switch" in ends)
            )
            for ends, many in found.items()
        }

    def carried_out(self, cell: Cell) -> tuple[Transfer, ...]:
        """Returns the cell's transfers, or the copies that CPUs of the source's node make in their
        place if the cell is staged in host memory."""
        if STAGED not in getattr(cell, "notes", ()):
            return cell.transfers
        return tuple(map(self._staged, cell.transfers))

    def _staged(self, transfer: Transfer) -> Transfer:
        one, other = str(transfer.source.place), str(transfer.destination.place)
        if not {one, other} <= self._near.keys() or self.bundles(one, other):
            return transfer
        engine = Engine(node_memory(int(self._near[one].rpartition(":")[2])), transfer.engine.kind)
        return Transfer(transfer.source, transfer.destination, engine, transfer.scale)

    def touched(self, transfer: Transfer) -> Touched:
        ends = [str(memory.place) for memory in transfer.memories] or [str(transfer.engine.owner)]
        owner = str(transfer.engine.owner)
        parts = {Part.of(transfer.engine.owner)}
        if transfer.engine.owner.is_nic:
            one, other = (str(end.place) for end in nic_ends(transfer))
            parts |= {Part.device(one), Part.device(other), Part.way(one, other)}
        parts.update(map(Part.of, transfer.memories))
        # Threads of a node are as many as it has CPUs, if no number is given.
        cpus, _ = self._machine.nodes.get(owner, (None, None))
        threads = transfer.engine.count or cpus
        by = f"{threads}" if transfer.engine.kind == "cpu" else ""
        kinds: list[str] = [transfer.engine.kind, by]
        pairs = [(ends[0], ends[-1]), *((end, owner) for end in ends if len(ends) == 1)]
        if is_node(owner) and transfer.engine.kind == "ce":  # staged there
            pairs = [(end, owner) for end in ends]
        for one, other in dict.fromkeys(pairs):
            between = self._between(one, other)
            parts |= between.parts
            kinds += between.kinds
        devices = self._machine.devices
        kinds += [devices[end][0] for end in ends if end in devices]
        kinds += [self._nodes[end] for end in ends if end in self._nodes]
        nodes = filter(is_node, ends)
        remote = any(self._near.get(one, node) != node for node in nodes for one in ends)
        kinds.append("remote" if remote else "near")
        directed = frozenset[tuple[Part, bool]]()
        for begin, end, *_ in transfer.legs():
            directed |= self._between(str(begin), str(end)).directed
        return Touched(frozenset(parts), tuple(kinds), directed)

    def between(self, one: str, other: str) -> frozenset[Part]:
        return self._between(one, other).parts

    def _find_between(self, one: str, other: str) -> Touched:
        crossed = self.route(one, other)
        if not crossed:
            return Touched(frozenset(), ("unknown" if crossed is None else "local",), frozenset())
        parts, passed, grades = set[Part](), set[str](), list[str]()
        directed: set[tuple[Part, bool]] = set()
        for wire, crossing in crossed:
            parts.add(wire.part)
            passed.add(crossing.end)
            grades += filter(None, (wire.grade,))
            if wire.kind != "bridge":
                directed.add((wire.part, crossing.forward))
        parts.update(map(self._at, passed - {one, other} - self._machine.functions.keys()))
        return Touched(frozenset(parts), tuple(sorted(grades)), frozenset(directed))

    def _at(self, place: str) -> Part:
        if place in self.switches:
            return Part.fabric_switch(place)
        return Part("node" if place in self._nodes else "device", place, (place,))

    def joints(self) -> dict[Part, set[Part]]:
        meeting: dict[str, set[Part]] = {}
        for wire in self.wires:
            for place in (wire.a, wire.b):
                meeting.setdefault(place, set()).add(wire.part)
        found: dict[Part, set[Part]] = {}
        for place in self.switches:
            found[Part.fabric_switch(place)] = meeting[place]
        for wire in self.wires:
            if wire.kind == "bridge":
                links = found.setdefault(wire.part, set())
                for port in {wire.a, wire.b} - self._nodes.keys():
                    links |= meeting[port] - {wire.part}
        return found


def _wire(part: Part, a: str, b: str, kind: str, **known: Any) -> Wire:
    return Wire(part.name, a, b, kind, part=part, **known)

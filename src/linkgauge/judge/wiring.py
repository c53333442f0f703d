"""What the inventory tells of how a machine is wired, as one map; and what each transfer touches.

A part's name is the memory's notation, `sim:0-sim:1` of a fabric's link, `PCIe link of sim:0`,
`PCIe switch 0000:04:00.0` (its upstream port), or `host bridge 0000:00`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import cache

import msgspec

from linkgauge.model.inventory import PciFunction, PciLink
from linkgauge.model.map import Crossing, Link, Map, Passing
from linkgauge.model.transfer import Transfer

from .fabric_rates import LinkBundle, bundles
from .findings import Evidence


class Wire(Link, frozen=True):
    """A link as it was found. Links of one `grade` should be equally fast. Of a PCIe link, `lower`
    and `upper` are its ends as far as they show; that of a `device` may be told by its library,
    too. Of a fabric's, `bundle` is what runs side by side."""

    grade: str = ""
    lower: PciFunction | None = None
    upper: PciFunction | None = None
    device: str | None = None
    told: PciLink | None = None
    bundle: LinkBundle | None = None


class Touched(msgspec.Struct, frozen=True):
    """The parts that transfers touch. Transfers of the same `sort` take ways of the same kinds:
    they should be equally fast."""

    parts: frozenset[str]
    sort: tuple[str, ...]


class Wiring:
    """The map of memories, switches and bridges. `switches` are a fabric's; `unsure` are those of
    which nothing tells whether they are one, `idle` a device's links that are down and do not say
    where they led."""

    def __init__(self, evidence: Evidence) -> None:
        self._evidence = evidence
        self.switches: set[str] = set()
        self._unsure: set[str] = set()
        self._idle: dict[str, int] = {}
        self._models = {device.memory: device.model for device in evidence.devices}
        self._near = {
            **{memory: f"host:{self._node(memory)}" for memory in evidence.accelerators},
            **{device.memory: f"host:{device.near}" for device in evidence.devices},
        }
        # Nodes are alike if they have as many CPUs and roughly as much memory.
        self._nodes = {
            f"host:{node.index}": f"{len(node.cpus)} {round(math.log2(node.memory_total or 1))}"
            for node in evidence.before.host.nodes
        }
        found: dict[frozenset[str], Wire] = {}
        for wire in self._wires():
            known = found.setdefault(frozenset((wire.a, wire.b)), wire)
            if wire.bundle and known.bundle and wire.bundle.count < known.bundle.count:
                found[frozenset((wire.a, wire.b))] = wire  # both ends tell of it
        self.wires = tuple(found.values())
        ends = dict.fromkeys(end for wire in self.wires for end in (wire.a, wire.b))
        places = {place: self._passing(place) for place in (*self._nodes, *self._near, *ends)}
        self.map = Map(places, self.wires)
        self.touched = cache(self._touched)
        self._between = cache(self._find_between)

    def _node(self, memory: str) -> int:
        function = self._function(memory)
        return (function.numa_node if function else None) or 0

    def _function(self, memory: str) -> PciFunction | None:
        return self._evidence.functions.get(self._evidence.addresses.get(memory, ""))

    def _passing(self, place: str) -> Passing:
        """Devices may pass on what stays within their fabric; of memories that are not ours,
        nothing tells that they do."""
        if place in self._near:
            return "fabric"
        ours = place.startswith("host:") or place in self._evidence.functions
        return "all" if ours or not is_memory(place) else "none"

    def _wires(self) -> Iterator[Wire]:
        for memory, host in self._near.items():
            links = list(self._fabric(memory))
            yield from links
            # A device has one way to the host: its own fabric's, where that leads there.
            if not any(wire.kind == "internal" for wire in links):
                yield from self._pcie(memory, host)
        nodes = list(self._nodes)
        for place, one in enumerate(nodes):
            for other in nodes[place + 1 :]:
                grade = f"socket {self._far(one, other)}"
                yield Wire(f"{one}-{other}", one, other, "socket", grade=grade)

    def _far(self, one: str, other: str) -> int | None:
        """The kernel's distance of two nodes."""
        here, there = (int(name.rpartition(":")[2]) for name in (one, other))
        distances = self._evidence.inventory.host.distances
        # A row has a column for each node that is online, whatever their numbers.
        row = dict(zip(sorted(distances), distances.get(here, ()), strict=False))
        return row.get(there)

    def _fabric(self, here: str) -> Iterator[Wire]:
        accelerator = self._evidence.accelerators.get(here)
        for remote, bundle in bundles(accelerator.links if accelerator else ()).items():
            if remote is None and not bundle.count:
                self._idle[here] = bundle.all
                continue
            there = remote or f"{bundle.kind} switch"
            if remote is None:
                self._unsure.add(there)
            if not is_memory(there):
                self.switches.add(there)
            kind = "internal" if there.startswith("host:") else "fabric"
            grade = f"{bundle.kind} {bundle.nominal:.3g}"
            yield Wire(link_name(here, there), here, there, kind, grade=grade, bundle=bundle)

    def _pcie(self, memory: str, host: str) -> Iterator[Wire]:
        """Up to the host bridge. Bridges that a hypervisor shows need not be there."""
        function = self._function(memory)
        accelerator = self._evidence.accelerators.get(memory)
        told = accelerator.link if accelerator else None
        if function is None:
            name = f"link of {memory}"
            yield Wire(name, memory, host, "pcie", grade="link", device=memory, told=told)
            return
        line = [function]
        if self._evidence.inventory.host.hypervisor is None:
            line += self._evidence.pci_tree.above(function.address)
        here = memory
        for lower, upper in zip(line, (*line[1:], None), strict=True):
            there = upper.address if upper else host
            if upper is not None and lower.port == "downstream port":
                yield Wire(switch_name(there), here, there, "bridge")
            elif upper is None and here != memory and lower.port != "upstream port":
                yield Wire(bridge_name(here), here, there, "bridge", grade="host bridge")
            else:
                yield Wire(
                    pcie_name(here),
                    here,
                    there,
                    "pcie",
                    grade=f"PCIe {lower.link.max_speed} x{lower.link.max_width}",
                    lower=lower,
                    upper=upper,
                    device=memory if here == memory else None,
                    told=told if here == memory else None,
                )
            here = there

    def route(self, begin: str, end: str) -> list[tuple[Wire, Crossing]] | None:
        """All wires that are crossed, and how; None where nothing is known to join the two."""
        route = self.map.route(begin, end)
        return None if route is None else [(self.wires[each.number], each) for each in route]

    def is_unsure(self, begin: str, end: str) -> bool:
        """Whether a switch is on the route of which nothing tells that it is one."""
        return any({wire.a, wire.b} & self._unsure for wire, _ in self.route(begin, end) or ())

    def bundles(self, begin: str, end: str) -> dict[tuple[str, str], LinkBundle]:
        """The fabric's links on the route, by what they join; links to several switches are one.
        Empty where the route leads through a memory: that it passes traffic on, nothing tells."""
        crossed = self.route(begin, end) or ()
        passed = {crossing.end for _, crossing in crossed} - {begin, end} - self.switches
        if not (begin + end).count("host:") and passed:
            return {}
        found: dict[tuple[str, str], list[LinkBundle]] = {}
        for wire, crossing in crossed:
            if wire.bundle is not None:
                ends = [
                    "switch" if place in self.switches else place
                    for place in (crossing.begin, crossing.end)
                ]
                found.setdefault((ends[0], ends[1]), []).append(wire.bundle)
        return {
            ends: LinkBundle.joined(
                many, sum(self._idle.get(e, 0) for e in ends if "switch" in ends)
            )
            for ends, many in found.items()
        }

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
        crossed = self.route(one, other)
        if not crossed:
            return set(), ["unknown" if crossed is None else "local"]
        passed = {crossing.end for _, crossing in crossed} - {one, other}
        parts = {wire.name for wire, _ in crossed} | passed - self._evidence.functions.keys()
        return parts, sorted(wire.grade for wire, _ in crossed if wire.grade)

    def joints(self) -> dict[str, set[str]]:
        """The switches and host bridges, each with the links that meet there."""
        found = {place: {link.name for link in self.map.at(place)} for place in self.switches}
        for wire in self.wires:
            if wire.kind == "bridge":
                ports = [place for place in (wire.a, wire.b) if place not in self._nodes]
                links = {link.name for port in ports for link in self.map.at(port)}
                found.setdefault(wire.name, set()).update(links - {wire.name})
        return found


def is_memory(name: str) -> bool:
    """Whether it is a memory, or stands for one that is not ours."""
    return ":" in name.partition(" ")[0] or name.startswith(("gpu", "cpu"))


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

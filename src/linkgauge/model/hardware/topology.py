"""Prepares a machine's wiring for a diagram. A switch and its ports become one place."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Literal

import msgspec

from linkgauge.model.grouped import grouped

from .host_details import UNREACHABLE
from .machine import Machine
from .wiring import Wire

Kind = Literal["node", "bridge", "device", "nic", "switch"]


class TopologyPlace(msgspec.Struct, frozen=True):
    name: str
    kind: Kind
    above: str | None = None


class Joint(msgspec.Struct, frozen=True, eq=False, dict=True):
    a: str
    b: str
    wires: tuple[Wire, ...] = ()

    @cached_property
    def rate(self) -> float | None:
        rates = [wire.best or 0.0 for wire in self.wires]
        return sum(rates) if rates and all(rates) else None

    def carries_no_more(self, other: Joint) -> bool:
        """Whether this joint is certain not to be faster than `other`."""
        if self.rate and other.rate:
            return self.rate <= other.rate
        # Without both rates, only the same fabric links are sure to be equally fast.
        own, others = ([w.grade for w in one.wires if w.kind == "fabric"] for one in (self, other))
        return self is other or own == others != []


class Topology(msgspec.Struct, frozen=True):
    """A diagram of a machine: places, and joints of parallel wires. `joined` maps a wire's name to
    its joint. `inside` maps the name of a port or merged switch to the name of its place."""

    places: Mapping[str, TopologyPlace]
    joints: tuple[Joint, ...]
    joined: Mapping[str, Joint]
    inside: Mapping[str, str]

    def below(self, name: str | None) -> list[TopologyPlace]:
        return [place for place in self.places.values() if place.above == name]

    def switches(self) -> list[list[TopologyPlace]]:
        """Returns the switches of fabrics by level, from the level next to the devices."""
        left = {name for name, place in self.places.items() if place.kind == "switch"}
        reached = set(self.places) - left
        found = []
        while left:
            near = {end for j in self.joints for end in (j.a, j.b) if {j.a, j.b} & reached} & left
            found.append([self.places[name] for name in self.places if name in (near or left)])
            reached, left = reached | near, left - near if near else set()
        return found


def topology_of(machine: Machine, single: Collection[str] = ()) -> Topology:
    """Returns a diagram of the machine's wiring. Switches with equal neighbours are merged, unless
    `single` names them or one of their links."""
    wiring = machine.wiring
    is_cluster = any(device.node for device in machine.all_devices)
    separate = {device.memory for device in machine.all_devices if device.node or device.is_cpu}
    wires = [
        wire
        for wire in wiring.wires
        if _is_drawn(wire, separate, machine) and not (is_cluster and wire.kind == "socket")
    ]
    inside = {
        port: wire.name
        for wire in wires
        if wire.kind == "bridge"
        for port in (wire.a, wire.b)
        if not port.startswith("host:")
    }
    inside |= _merged(wiring.switches, wires, single)
    nodes = [f"host:{node.index}" for node in machine.host.nodes if not is_cluster]
    places = {name: TopologyPlace(name, "node") for name in nodes}
    for wire in wires:
        a, b = (inside.get(end, end) for end in (wire.a, wire.b))
        is_below = wire.kind in ("pcie", "internal", "bridge")
        for name, end in ((a, wire.a), (b, wire.b)):
            kind: Kind = "switch" if end in wiring.switches else "device"
            kind = "nic" if end in wiring.adapters else kind
            kind = "bridge" if end != name and kind == "device" else kind
            places.setdefault(name, TopologyPlace(name, kind))
        if is_below and a != b and places[a].kind != "node":
            places[a] = TopologyPlace(a, places[a].kind, b)
    found = grouped(
        (frozenset(inside.get(end, end) for end in (wire.a, wire.b)), wire)
        for wire in wires
        if wire.kind != "bridge"
    )
    joints = [
        Joint(inside.get(some[0].a, some[0].a), inside.get(some[0].b, some[0].b), tuple(some))
        for some in found.values()
    ]
    joined = {wire.name: joint for joint in joints for wire in joint.wires}
    adapters = [one for one in _adapters(machine, inside, nodes) if one.name not in places]
    places |= {one.name: one for one in adapters}
    joints += [Joint(one.name, one.above or "") for one in adapters]
    return Topology(places, tuple(joints), joined, inside)


def _is_drawn(wire: Wire, separate: Collection[str], machine: Machine) -> bool:
    if wire.kind == "socket":
        return machine.wiring.distance(wire.a, wire.b) != UNREACHABLE
    return wire.kind == "fabric" or wire.a not in separate


def _merged(
    switches: Iterable[str], wires: Sequence[Wire], single: Collection[str]
) -> dict[str, str]:
    near: dict[str, set[str]] = {name: set() for name in sorted(switches)}
    for wire in wires:
        for here, there in ((wire.a, wire.b), (wire.b, wire.a)):
            if here in near:
                near[here] |= {there, *({here} & {*single}), *({wire.name} & {*single})}
    equivalent = grouped((frozenset(others), name) for name, others in near.items())
    return {
        name: name if len(some) == 1 else f"{some[0]} and {len(some) - 1} more"
        for some in equivalent.values()
        for name in some
    }


def _adapters(
    machine: Machine, inside: Mapping[str, str], nodes: Sequence[str]
) -> Iterator[TopologyPlace]:
    known = {one.pci: one.name for one in machine.known.interfaces if one.pci}
    known |= {one.pci: one.device for one in machine.known.adapters if one.pci}
    for address, name in known.items() if nodes else ():
        function = machine.functions.get(address)
        above = (inside.get(one.address) for one in machine.pci_line(address)[1:])
        node = f"host:{(function and function.numa_node) or 0}"
        yield TopologyPlace(
            name, "nic", next(filter(None, above), node if node in nodes else nodes[0])
        )

"""A machine's wiring, as its inventory reports it, in one map; and what each transfer touches.

A part's name is the memory's notation, `sim:0-sim:1` for a fabric link, `PCIe link of sim:0`, `PCIe
switch 0000:04:00.0` (its upstream port), `host bridge 0000:00`, `node3` and `rail1` of the
interfaces that belong to them, or `nic:1@0 -> nic:1@2`, the way
from one network interface to another.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import cache
from typing import TYPE_CHECKING

import msgspec

from .inventory import PciFunction, PciLink
from .link_bundles import LinkBundle, bundles
from .map import Crossing, Link, Map, Passing
from .nics import nic_ends
from .transfer import Transfer

if TYPE_CHECKING:
    from .machine import Machine


class Wire(Link, frozen=True):
    """A link as found. Links of the same `grade` should be equally fast. For a PCIe link, `lower`
    and `upper` are its ends if visible; for the link of a `device`, `reported` is what its library
    says of it. For a fabric, `bundle` holds the parallel links, and `nominal` is their signalling
    rate in bytes/s (None: unknown)."""

    grade: str = ""
    lower: PciFunction | None = None
    upper: PciFunction | None = None
    device: str | None = None
    reported: PciLink | None = None
    bundle: LinkBundle | None = None
    nominal: float | None = None


class Touched(msgspec.Struct, frozen=True):
    """The parts that transfers touch. Transfers of the same `kinds` cross the same kinds of links:
    they should be equally fast."""

    parts: frozenset[str]
    kinds: tuple[str, ...]


def _nics(transfer: Transfer) -> tuple[str, ...]:
    """The network interfaces of a transfer, and the way from the one to the other."""
    if not transfer.engine.owner.is_nic:
        return ()
    one, other = (str(end.place) for end in nic_ends(transfer))
    return one, other, f"{one} -> {other}"


class Wiring:
    """The map of memories, switches and bridges. `switches` are a fabric's; `_unsure` are those
    that are not known to be switches, `_idle` counts each device's links that are down and do not
    report where they led."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self.switches: set[str] = set()
        self._unsure: set[str] = set()
        self._idle: dict[str, int] = {}
        # Accelerators that only PCI shows are listed under their address.
        self._hidden = {one for name, one in machine.addresses.items() if name == one}
        self._models = {device.memory: device.model for device in machine.all_devices}
        self._near = {
            **{memory: f"host:{self._node(memory)}" for memory in machine.accelerators},
            **{device.memory: f"host:{device.near}" for device in machine.all_devices},
        }
        # Nodes are alike if they have the same number of CPUs and roughly the same memory.
        self._nodes = {
            f"host:{node.index}": f"{len(node.cpus)} {round(math.log2(node.memory_total or 1))}"
            for node in machine.host.nodes
        }
        found: dict[frozenset[str], Wire] = {}
        for wire in self._wires():
            known = found.setdefault(frozenset((wire.a, wire.b)), wire)
            if wire.bundle and known.bundle and wire.bundle.count < known.bundle.count:
                found[frozenset((wire.a, wire.b))] = wire  # both ends report it
        self.wires = tuple(found.values())
        ends = dict.fromkeys(end for wire in self.wires for end in (wire.a, wire.b))
        places = {place: self._passing(place) for place in (*self._nodes, *self._near, *ends)}
        self.map = Map(places, self.wires, machine.known.routing)
        self.touched = cache(self._touched)
        self.route = cache(self._route)
        self._between = cache(self._find_between)

    def _node(self, memory: str) -> int:
        function = self._function(memory)
        return (function.numa_node if function else None) or 0

    def _function(self, memory: str) -> PciFunction | None:
        return self._machine.functions.get(self._machine.addresses.get(memory, ""))

    def _passing(self, place: str) -> Passing:
        """Devices may forward what stays within their fabric; memories that are not ours are not
        known to forward anything."""
        if place in self._near:
            return "fabric"
        ours = place.startswith("host:") or place in self._machine.functions
        return "all" if ours or not is_memory(place) else "none"

    def _wires(self) -> Iterator[Wire]:
        for memory, host in self._near.items():
            links = list(self._fabric(memory))
            yield from links
            # A device has one path to the host: over its own fabric if that leads there.
            if not any(wire.kind == "internal" for wire in links):
                yield from self._pcie(memory, host)
        yield from self._between_switches()
        nodes = list(self._nodes)
        for place, one in enumerate(nodes):
            for other in nodes[place + 1 :]:
                grade = f"socket {self.distance(one, other)}"
                yield Wire(f"{one}-{other}", one, other, "socket", grade=grade)

    def distance(self, one: str, other: str) -> int | None:
        """The kernel's NUMA distance between two nodes."""
        here, there = (int(name.rpartition(":")[2]) for name in (one, other))
        distances = self._machine.known.host.distances
        # A row has a column for each online node, whatever the nodes' numbers.
        row = dict(zip(sorted(distances), distances.get(here, ()), strict=False))
        return row.get(there)

    def _fabric(self, here: str) -> Iterator[Wire]:
        accelerator = self._machine.accelerators.get(here)
        links = [
            msgspec.structs.replace(link, remote=self._remote(here, link.remote))
            for link in (accelerator.links if accelerator else ())
        ]
        for remote, bundle in bundles(links).items():
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
            yield Wire(
                link_name(here, there), here, there, kind, grade=grade, bundle=bundle,
                nominal=bundle.nominal or None,
            )  # fmt: skip

    def _between_switches(self) -> Iterator[Wire]:
        for link in self._machine.known.switch_links:
            self.switches |= {link.a, link.b}
            grade = f"{link.kind} {link.count} x {(link.rate or 0) / link.count:.3g}"
            yield Wire(
                link_name(link.a, link.b), link.a, link.b, "fabric", grade=grade, nominal=link.rate
            )

    def _remote(self, here: str, remote: str | None) -> str | None:
        """Where a link leads; null if that may be a switch. A GPU that no backend reaches is none:
        nothing tells that it forwards what others send."""
        kind, _, address = (remote or "").partition(" ")
        if kind == "device":
            return f"gpu {address}" if address in self._hidden else None
        return f"gpu beside {here}" if remote == "gpu" and self._hidden else remote

    def _pcie(self, memory: str, host: str) -> Iterator[Wire]:
        """Links up to the host bridge."""
        function = self._function(memory)
        accelerator = self._machine.accelerators.get(memory)
        reported = accelerator.link if accelerator else None
        if function is None:
            name = f"link of {memory}"
            yield Wire(name, memory, host, "pcie", grade="link", device=memory, reported=reported)
            return
        line = self._machine.pci_line(function.address)
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
                    reported=reported if here == memory else None,
                )
            here = there

    def _route(self, begin: str, end: str) -> list[tuple[Wire, Crossing]] | None:
        """The wires crossed, and how; None if nothing is known to join the two."""
        route = self.map.route(begin, end)
        return None if route is None else [(self.wires[each.number], each) for each in route]

    def is_unsure(self, begin: str, end: str) -> bool:
        """Whether a switch on the route is not known to be one."""
        return any({wire.a, wire.b} & self._unsure for wire, _ in self.route(begin, end) or ())

    def bundles(self, begin: str, end: str) -> dict[tuple[str, str], LinkBundle]:
        """The fabric links on the route, by what they join; links to several switches count as one.
        Empty if the route leads through a memory, which is not known to forward traffic."""
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
        ends = [str(memory.place) for memory in transfer.memories] or [str(transfer.engine.owner)]
        owner = str(transfer.engine.owner)
        parts = {*ends, owner, *_nics(transfer)}
        kinds: list[str] = [transfer.engine.kind]
        pairs = {(ends[0], ends[-1]), *((end, owner) for end in ends if len(ends) == 1)}
        for one, other in sorted(pairs):
            crossed, grades = self._between(one, other)
            parts |= crossed
            kinds += grades
        kinds += [self._models[end] for end in ends if end in self._models]
        kinds += [self._nodes[end] for end in sorted({*ends, owner}) if end in self._nodes]
        remote = any(self._near.get(one, other) != other for one in ends for other in ends
                     if other.startswith("host:"))  # fmt: skip
        return Touched(frozenset(parts), (*kinds, "remote" if remote else "near"))

    def between(self, one: str, other: str) -> set[str]:
        """The parts on the ways from one memory to another."""
        return self._between(one, other)[0]

    def _find_between(self, one: str, other: str) -> tuple[set[str], list[str]]:
        """The parts on all shortest routes, and the grades of the wires, one for each."""
        crossed = self.route(one, other)
        if not crossed:
            return set(), ["unknown" if crossed is None else "local"]
        passed = {crossing.end for _, crossing in crossed} - {one, other}
        parts = {wire.name for wire, _ in crossed} | passed - self._machine.functions.keys()
        return parts, sorted(wire.grade for wire, _ in crossed if wire.grade)

    def opposed(self, transfers: Sequence[Transfer]) -> Iterator[str]:
        """The names of the wires that these transfers cross in both directions at once."""
        crossed: dict[str, set[bool]] = {}
        legs = (leg for transfer in transfers for leg in transfer.legs())
        for begin, end, *_ in legs:
            for wire, crossing in self.route(str(begin), str(end)) or ():
                if wire.kind != "bridge":
                    crossed.setdefault(wire.name, set()).add(crossing.forward)
        for name, directions in crossed.items():
            if len(directions) == 2:
                yield name

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
    """Whether the name is that of a memory, or stands for one that is not ours."""
    return ":" in name.partition(" ")[0] or name.startswith(("gpu", "cpu", "device"))


def pcie_name(lower: str) -> str:
    """Name of a PCIe link, from the device at its lower end or the upstream port's address."""
    return f"PCIe link of {lower}"


def both_name(link: str) -> str:
    """A link's name while it is crossed in both directions at once, a part of its own: it may carry
    less than twice what it carries in one."""
    return f"{link} (both directions at once)"


def switch_name(upstream: str) -> str:
    """Name of a PCIe switch, from the address of its upstream port."""
    return f"PCIe switch {upstream}"


def bridge_name(root_port: str) -> str:
    """Name of a host bridge, from its domain and bus: those of a root port's address."""
    return f"host bridge {root_port.rpartition(':')[0]}"


def link_name(one: str, other: str) -> str:
    """Name of a link, the same from both ends: devices first, then by index."""
    return "-".join(sorted((one, other), key=_place))


def _place(name: str) -> tuple[bool, str, int]:
    space, _, index = name.rpartition(":")
    is_place = bool(space) and index.isdecimal()
    return (not is_place or space == "host", space or name, int(index) if is_place else 0)

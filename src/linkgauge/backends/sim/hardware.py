"""How a description's groups become single nodes, devices, adapters, switches and links."""

from __future__ import annotations

import re
import uuid
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import combinations, count, repeat
from operator import attrgetter

import msgspec

from linkgauge.machine.tree import ADDRESS
from linkgauge.model.errors import InputError
from linkgauge.model.hardware import map as graph
from linkgauge.model.hardware.pcie import link_rate

from .description import (
    AdapterGroup,
    Description,
    DeviceGroup,
    LinkGroup,
    LinkKind,
    NodeGroup,
    SwitchGroup,
)

_RANGE = re.compile(r"(.*?)([0-9]{1,5})\.\.([0-9]{1,5})")
_SWITCH = re.compile(r"[a-z][a-z0-9_.]*")
_NAME = attrgetter("name")
_FIRST_BUS = 0x10
_SERIES = uuid.UUID("6c696e6b-6761-7567-6500-73696d756c61")
"""The name space of made-up UUIDs. It keeps a machine's UUIDs always the same."""


class NodeUnit(msgspec.Struct, frozen=True):
    name: str
    index: int
    cpus: tuple[int, ...]
    group: NodeGroup


class DeviceUnit(msgspec.Struct, frozen=True):
    """A simulated device. `pci` is the PCI address as in sysfs. `pci` is None for a device that
    stands for a whole node, or for the network interface of a `node` on a `rail`."""

    name: str
    index: int
    pci: str | None
    uuid: str
    group: DeviceGroup
    node: str | None = None
    rail: str | None = None

    @property
    def names(self) -> frozenset[str]:
        return frozenset(filter(None, (self.name, self.node, self.rail)))


class AdapterUnit(msgspec.Struct, frozen=True):
    name: str
    pci: str
    group: AdapterGroup

    @property
    def reported_rate(self) -> float | None:
        """The rate in bytes/s that sysfs shows; None if it is only assumed."""
        rate = self.group.rate
        return None if rate is None or self.group.assumed else float(rate)


class SwitchUnit(msgspec.Struct, frozen=True):
    name: str
    group: SwitchGroup


class SimLink(graph.Link, frozen=True):
    """A link, named `a-b` by default. `rate` is in bytes/s of one direction."""

    kind_name: str
    common: LinkKind
    rate: float


class Hardware(msgspec.Struct, frozen=True, dict=True):
    description: Description
    nodes: tuple[NodeUnit, ...]
    devices: tuple[DeviceUnit, ...]
    switches: tuple[SwitchUnit, ...]
    adapters: tuple[AdapterUnit, ...]
    links: tuple[SimLink, ...]
    names: tuple[str, ...]

    @property
    def cards(self) -> tuple[DeviceUnit | AdapterUnit, ...]:
        return (*self.devices, *self.adapters)

    @cached_property
    def switch_names(self) -> frozenset[str]:
        return frozenset(switch.name for switch in self.switches)

    @cached_property
    def kinds(self) -> Mapping[str, int]:
        """Maps nodes and devices to their group's number; empty if there is one group of each."""
        groups: list[NodeGroup | DeviceGroup] = []
        kinds: dict[str, int] = {}
        units: tuple[NodeUnit | DeviceUnit, ...] = (*self.nodes, *self.devices)
        for unit in units:
            if unit.group not in groups:
                groups.append(unit.group)
            kinds[unit.name] = groups.index(unit.group)
        is_uniform = len(groups) == bool(self.nodes) + bool(self.devices)
        return {} if is_uniform else kinds


def build(description: Description) -> Hardware:
    """Expands a description. Raises InputError with the name of the wrong field."""
    nodes: list[NodeUnit] = []
    first = 0
    for group in description.host.nodes:
        for index in range(len(nodes), len(nodes) + group.count):
            cpus = tuple(range(first, first + group.cpus))
            nodes.append(NodeUnit(f"host:{index}", index, cpus, group))
            first += group.cpus
    if not nodes:
        raise _wrong("host.nodes is empty: a host has at least one node")
    devices = tuple(_devices(description.devices))
    adapters = tuple(_adapters(description.adapters, devices)) if description.adapters else ()
    switches: list[SwitchUnit] = []
    for switch in description.switches:
        names = _names("switch", switch.name)
        switches += map(SwitchUnit, names, repeat(switch))
    known = tuple(map(_NAME, (*nodes, *devices, *adapters, *switches)))
    links = tuple(_links(description, set(known)))
    for what, several in (("switches", known), ("links", map(_NAME, links))):
        for name, times in Counter(several).items():
            if times > 1:
                raise _wrong(f"{what}: several have the name {name}")
    return Hardware(description, tuple(nodes), devices, tuple(switches), adapters, links, known)


def with_cpus(hardware: Hardware, cpus: Sequence[int]) -> Hardware:
    """Returns hardware with only `cpus` (empty: all CPUs). Raises InputError for an unknown CPU."""
    if not cpus:
        return hardware
    known = {cpu for node in hardware.nodes for cpu in node.cpus}
    if missing := sorted(set(cpus) - known):
        raise InputError(f"the simulated machine has no CPU {missing[0]}: it has {len(known)}")
    nodes = (
        msgspec.structs.replace(node, cpus=tuple(cpu for cpu in node.cpus if cpu in cpus))
        for node in hardware.nodes
    )
    return msgspec.structs.replace(hardware, nodes=tuple(nodes))


def expand(text: str) -> tuple[str, ...]:
    """Expands `sim:0..2` to sim:0, sim:1 and sim:2. Any other name stays as it is."""
    match = _RANGE.fullmatch(text)
    if not match:
        return (text,)
    return tuple(f"{match[1]}{number}" for number in range(int(match[2]), int(match[3]) + 1))


def _devices(groups: Sequence[DeviceGroup]) -> Iterator[DeviceUnit]:
    index = 0
    rails = [place for place, group in enumerate(groups) if group.node]
    for place, group in enumerate(groups):
        rail = f"rail{rails.index(place)}" if group.node and len(rails) > 1 else None
        where = f"$.devices[{place}]"
        addresses = _stated(group, "pci", group.count, where)
        uuids = _stated(group, "uuids", group.count, where)
        for number, pci, own in zip(range(group.count), addresses, uuids, strict=True):
            made_up_pci = None if group.node else f"0000:{_FIRST_BUS + index:02x}:00.0"
            made_up = str(uuid.uuid5(_SERIES, f"{group.model}/{index}"))
            node = f"node{number}" if group.node else None
            yield DeviceUnit(
                f"sim:{index}", index, pci or made_up_pci, own or made_up, group, node, rail
            )
            index += 1


def _adapters(
    groups: Sequence[AdapterGroup], devices: Sequence[DeviceUnit]
) -> Iterator[AdapterUnit]:
    taken = set(map(attrgetter("pci"), devices))
    free = (own for bus in count(_FIRST_BUS) if (own := f"0000:{bus:02x}:00.0") not in taken)
    for place, group in enumerate(groups):
        names = _names("adapter", group.name)
        stated = _stated(group, "pci", len(names), f"$.adapters[{place}]")
        for name, pci in zip(names, stated, strict=True):
            yield AdapterUnit(name, pci or next(free), group)


def _stated(
    group: DeviceGroup | AdapterGroup, field: str, many: int, where: str
) -> Sequence[str | None]:
    given: tuple[str, ...] | None = getattr(group, field)
    if given is None:
        return (None,) * many
    if len(given) != many:
        raise _wrong(f"{many} expected, found {len(given)}", f"{where}.{field}")
    for pci in given if field == "pci" else ():
        if not re.fullmatch(ADDRESS, pci):
            raise _wrong(f"{pci!r} is no PCI address (0000:1b:00.0)")
    return given


def _names(what: str, text: str) -> Sequence[str]:
    for name in (names := expand(text)):
        if not _SWITCH.fullmatch(name):
            raise _wrong(f"{what} {name!r}: give small letters, digits, '_' and '.'")
    return names


def _links(description: Description, names: Collection[str]) -> Iterator[SimLink]:
    for place, group in enumerate(description.links):
        where = f"$.links[{place}]"
        kind = description.link_kinds.get(group.kind)
        if kind is None:
            known = ", ".join(description.link_kinds)
            raise _wrong(f"unknown kind {group.kind!r}: give one of {known}", where)
        pairs = list(_pairs(group, where))
        if group.name is not None and len(pairs) != 1:
            raise _wrong("only a single link has a name", where)
        for a, b in pairs:
            if a == b:
                raise _wrong(f"a link from {a!r} to itself", where)
            for end in (a, b):
                if end not in names:
                    raise _wrong(f"no {end!r}", where)
            if kind.rate is not None:
                rate = kind.rate * kind.count
            elif kind.kind == "pcie" and kind.speed and kind.width:
                rate = link_rate(kind.speed, kind.width) * kind.count
            else:
                problem = "give a rate, or speed and width of a pcie link"
                raise _wrong(problem, f"$.link_kinds.{group.kind}")
            name = group.name or f"{a}-{b}"
            yield SimLink(name, a, b, kind.kind, group.kind, kind, rate)


def _pairs(group: LinkGroup, where: str) -> Iterator[tuple[str, str]]:
    ends = group.each or group.every
    given = (group.mesh, group.pairs, group.each, group.every)
    if given.count(None) != 3 or (ends is None) != (group.to is None):
        raise _wrong("give one of mesh, pairs, each with to, every with to", where)
    if group.mesh is not None:
        yield from combinations(expand(group.mesh), 2)
    elif group.pairs is not None:
        yield from group.pairs
    elif group.every is not None:
        for one in expand(group.to or ""):
            yield from ((other, one) for other in expand(group.every))
    else:
        many, few = expand(group.each or ""), expand(group.to or "")
        if not few or len(many) % len(few):
            raise _wrong(f"{len(many)} do not share {len(few)} evenly", where)
        for number, one in enumerate(many):
            yield one, few[number * len(few) // len(many)]


def _wrong(problem: str, field: str | None = None) -> InputError:
    where = "" if field is None else f" - at `{field}`"
    return InputError(f"machine description: {problem}{where}")

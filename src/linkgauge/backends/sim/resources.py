"""The resources of a simulated machine that transfers share, how much of each a transfer uses, and
which cells use equivalent resources."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Hashable, Iterator, Mapping, Sequence, Set
from functools import cache, lru_cache
from hashlib import blake2b
from itertools import chain, pairwise, product
from operator import itemgetter
from typing import NamedTuple

import msgspec
from msgspec.structs import replace

from linkgauge.model.errors import Unsupported
from linkgauge.model.grouped import Shared, numbering, sharing_first
from linkgauge.model.hardware.map import Crossing, Flow, Resource
from linkgauge.model.memory import Memory
from linkgauge.model.operations.operation import Operation, ProductType
from linkgauge.model.transfer import Access, Engine, EngineKind, Transfer

from .description import Caps, LinkKind, Turns
from .hardware import Hardware, NodeUnit, SimLink
from .topology import Route, SimTopology

_THREAD_STARTUP = 1e-6
"""Seconds that host threads take to start."""
_STAGED = 2.0
"""The bytes of additional traffic in a node's memory for each byte that is copied through it."""

_LIMITS = ("read", "write", "peer_read", "peer_write")
_ENGINES: tuple[tuple[str, str], ...] = tuple(product(("ce", "sm"), _LIMITS))
_BOTH = (False, True)
_OPPOSITE = {"read": "write", "write": "read", "device": "threads", "threads": "device"}
"""Resources of a link that limit transfers only while others use the opposite resource."""


_Usage = tuple[tuple[Resource, float], ...]


class Demand(msgspec.Struct, frozen=True):
    """A transfer's needs. `flow` has the use of each resource per byte of payload, and the highest
    bytes/s. `startup` is the seconds before bytes move. `queue` is the device that runs the kernel
    (one at a time), or None. Faults of the parts `touched` affect it. `jitter` is the relative
    standard deviation that links add, `opposed` is use only while opposite transfers run."""

    flow: Flow
    startup: float
    queue: str | None
    touched: frozenset[str]
    jitter: float
    opposed: _Usage = ()


class Resources:
    """The shared resources of a simulated machine. `capacity` has their limits in bytes/s, `names`
    the names by which faults select them. A resource is a memory, a limit of a device's engines,
    one direction of a link, both directions, a link's reads or writes while both occur, or the
    traffic between devices in a node."""

    def __init__(self, hardware: Hardware) -> None:
        self.hardware, self._host = hardware, hardware.description.host
        self.topology = SimTopology(hardware)
        self._links = hardware.links
        self.capacity: dict[Resource, float] = {}
        self.names: dict[Resource, frozenset[str]] = {}
        self._turns: dict[str, list[int]] = {}
        for node in hardware.nodes:
            if node.group.turns:  # threads and devices have separate resources on its links
                self._add_turns(node)
        own: dict[str, frozenset[str]] = {}
        for device in hardware.devices:
            group = device.group
            own[device.name] = device.names
            self._add(device.name, group.memory_rate, device.names)
            for kind, limit in _ENGINES:
                rate = getattr(getattr(group, kind), limit)
                self._add((device.name, kind, limit), rate, device.names)
        for number, link in enumerate(hardware.links):
            names = names_of(link).union(own.get(link.a, {link.a}), own.get(link.b, {link.b}))
            each = link.common.both_each
            for which, rate in (
                (True, link.rate), (False, link.rate), ("both", link.common.both),
                ("read", each.get("read")), ("write", each.get("write")),
            ):  # fmt: skip
                self._add((number, which), rate, names)
        for node in hardware.nodes:
            self._add(node.name, node.group.rate, {node.name})
            peers = self._host.peers.get(self._host.iommu)
            self._add((node.name, "peers"), peers, {node.name})
        self.demand = cache(self._demand)
        self._shared = Shared()

    def _add(self, resource: Resource, rate: float | None, names: Set[str]) -> None:
        if rate is not None:
            self.capacity[resource] = rate
            self.names[resource] = frozenset(names)

    def _add_turns(self, node: NodeUnit) -> None:
        turns = node.group.turns if isinstance(node.group.turns, Turns) else Turns()
        own = [number for number, link in enumerate(self._links) if node.name in (link.a, link.b)]
        self._turns[node.name] = own
        for number, (device, threads) in product(own, product(_BOTH, _BOTH)):
            parts = turns.shares(device=device, threads=threads)
            for side, part in zip(("device", "threads"), parts, strict=True):
                # No names: a fault of this link must not stop traffic on others.
                self._add((number, side, device, threads), part, frozenset())

    def _demand(self, transfer: Transfer, threads: int) -> Demand:
        engine = transfer.engine
        usage: defaultdict[Resource, float] = defaultdict(float)
        touched = {str(engine.owner)}
        jitters = [0.0]
        is_cpu = engine.kind == "cpu"
        cap = threads * self._host.thread if is_cpu else math.inf
        for memory in transfer.memories:
            touched.add(str(memory.place))
            usage[str(memory.place)] += 1.0
            if memory.kind == "pageable" and not is_cpu:
                # A thread copies it to or from a pinned buffer, which the engine uses instead.
                usage[str(memory.place)] += _STAGED
                cap = self._host.thread
        for source, target, access, part in transfer.legs():
            stops = self._staged(source, target)
            for route in self._ways(source, target, stops):
                jitters.append(route.jitter)
                for crossing in route.crossings:
                    touched |= self.names[crossing.number, True]
                self._cross(usage, route, engine.kind, access, part)
            for stop in stops:
                usage[stop] += 2 * part
                touched.add(stop)
            if not is_cpu:
                usage[str(engine.owner), engine.kind, access] += part
                peer = source if access == "read" else target
                if peer.is_device and peer != engine.owner:
                    usage[str(peer), engine.kind, f"peer_{access}"] += part
        if not is_cpu and transfer.memories == (engine.owner, engine.owner):
            cap = min(cap, self._caps(engine).local or math.inf)
        always, opposed = self._bounded(usage)
        return Demand(
            Flow(always, cap),
            _THREAD_STARTUP if is_cpu else self._startup(transfer),
            str(engine.owner) if engine.kind == "sm" else None,
            self._shared(frozenset(touched)),
            math.hypot(*jitters),
            opposed,
        )

    def _bounded(self, usage: Mapping[Resource, float]) -> tuple[_Usage, _Usage]:
        # Use of opposed resources counts only while opposite transfers run.
        always, opposed = list[tuple[Resource, float]](), list[tuple[Resource, float]]()
        for one in usage.items():
            if one[0] in self.capacity:
                (opposed if one[0][1] in _OPPOSITE else always).append(self._shared(one))
        return tuple(always), tuple(opposed)

    def facing(self, demands: Sequence[Demand]) -> list[Demand]:
        """Returns the demands, with added limits where transfers run in opposite directions."""
        used = {resource for demand in demands for resource, _ in demand.opposed}
        if not used:
            return list(demands)
        return [
            replace(demand, flow=replace(demand.flow, usage=(*demand.flow.usage, *met)))
            if (met := tuple(one for one in demand.opposed if one[1] and _opposite(one[0]) in used))
            else demand
            for demand in demands
        ]

    def concurrent_moving(self, demand: Demand, transfer: Transfer, does: Operation) -> Demand:
        """Returns a transfer's demand in the operation `does`, given its demand as a plain copy."""
        if does.name == "copy-ping-pong":  # the host waits for each copy
            return replace(demand, startup=demand.startup + self._host.wait)
        if does.array is None:
            return demand
        owner, taken = transfer.engine.owner, float(does.counted_arrays)
        cap = demand.flow.cap
        if transfer.engine.kind == "cpu":
            cap /= taken  # the arrays share a thread's rate
            taken += (self.hardware.nodes[owner.index or 0].group.writes - 1) * does.array.written
        own = {str(owner): taken}
        usage = tuple((name, own.get(str(name), part)) for name, part in demand.flow.usage)
        return replace(demand, flow=replace(demand.flow, usage=usage, cap=cap))

    def work(self, owner: Memory, product: ProductType) -> Demand:
        """Returns the demand of a matrix product. Raises Unsupported if no rate is described."""
        name = product.name
        rates = self.hardware.devices[owner.index or 0].group.products if owner.is_device else {}
        rate = rates.get(name.lower())  # type: ignore[call-overload]  # of none, none
        if rate is None:
            raise Unsupported(
                f"the description does not say how fast {owner} multiplies {name} matrices"
            )
        return Demand(Flow((), rate), 0.0, None, frozenset({str(owner)}), 0.0)

    @property
    def targets(self) -> tuple[str, ...]:
        names = list(self.hardware.names)
        for device in self.hardware.devices:
            names += sorted(device.names)
        names += sorted(frozenset[str]().union(*map(names_of, self.hardware.links)))
        return tuple(dict.fromkeys(names))

    def latency(self, memory: Memory, owner: Memory) -> float:
        """Returns the seconds of an access: the links' round trip and the memory's latency."""
        index = memory.index or 0
        if memory.is_host:
            own = self.hardware.nodes[index].group.latency
        else:
            own = self.hardware.devices[index].group.memory_latency
        return own + self._route(owner, memory.place).latency

    def _route(self, source: Memory, target: Memory) -> Route:
        route = self.topology.route(str(source), str(target))
        return route or Route((), 0.0, 0.0)  # transfers without a route are refused

    def _ways(self, source: Memory, target: Memory, stops: Sequence[str]) -> tuple[Route, ...]:
        if not stops or self.topology.leaves(str(source), str(target)):
            return (self._route(source, target),)
        ends = pairwise((str(source), *stops, str(target)))
        return tuple(route for end in ends if (route := self.topology.route(*end)))

    def _staged(self, source: Memory, target: Memory) -> tuple[str, ...]:
        # The driver copies through host memory if devices cannot access each other's memory.
        ends = str(source), str(target)
        if not (source.is_device and target.is_device) or self.topology.reaches(*ends):
            return ()
        near = [f"host:{self.topology.nearest_node(end)}" for end in ends]
        return tuple(near if self.topology.leaves(*ends) else near[:1])

    def in_switch(self, rank: Memory, *, inward: bool) -> Demand:
        """Returns a device's demand for sending to its fabric's switches if `inward` is true, else
        for receiving from them. Raises Unsupported if no link joins it to a switch."""
        route = self.topology.to_switches(str(rank))
        if route is None:
            raise Unsupported(f"no switch of a fabric is next to {rank}")
        if not inward:
            back = (crossing._replace(forward=not crossing.forward) for crossing in route.crossings)
            route = replace(route, crossings=tuple(back))
        usage: defaultdict[Resource, float] = defaultdict(float)
        self._cross(usage, route, "sm", "write", 1.0)
        names = (self.names[crossing.number, True] for crossing in route.crossings)
        touched = frozenset((str(rank),)).union(*names)
        always, opposed = self._bounded(usage)
        caps = self._caps(Engine(rank, "sm"))
        startup = caps.startup if caps.peer_startup is None else caps.peer_startup
        return Demand(Flow(always), startup, None, touched, route.jitter, opposed)

    def _cross(
        self,
        usage: dict[Resource, float],
        route: Route,
        engine: EngineKind,
        access: Access,
        part: float,
    ) -> None:
        """Adds the route's use of links: payload and overhead one way, requests the other way."""
        for crossing in route.crossings:
            link = self._links[crossing.number]
            kind = link.common
            efficiency, returns = kind.efficiency, kind.reverse
            if engine == "sm":
                efficiency = efficiency if kind.sm_efficiency is None else kind.sm_efficiency
                returns = returns if kind.sm_reverse is None else kind.sm_reverse
            ahead = part * crossing.share / efficiency.get(access, 1.0)
            back = part * crossing.share * returns.get(access, 0.0)
            for turn in self._turns_of(crossing, engine == "cpu"):
                usage[turn] += ahead / link.rate
            usage[crossing.number, crossing.forward] += ahead
            usage[crossing.number, "both"] += ahead + back
            usage[crossing.number, access] += part * crossing.share * _beside(kind, engine, access)
            if back:
                usage[crossing.number, not crossing.forward] += back
        for node in route.through:
            usage[node, "peers"] += part

    def _turns_of(self, crossing: Crossing, by_threads: bool) -> Iterator[Resource]:
        # A device takes turns on the crossed link, threads on the node's other links.
        link = self._links[crossing.number]
        for end, inward in ((link.a, not crossing.forward), (link.b, crossing.forward)):
            for number in self._turns.get(end, ()):
                if by_threads == (number != crossing.number):
                    for other in _BOTH:
                        if by_threads:
                            yield number, "threads", other, inward
                        else:
                            yield number, "device", inward, other

    def _caps(self, engine: Engine) -> Caps:
        group = self.hardware.devices[engine.owner.index or 0].group
        return group.sm if engine.kind == "sm" else group.ce

    def _startup(self, transfer: Transfer) -> float:
        caps, owner = self._caps(transfer.engine), transfer.engine.owner
        for memory in transfer.memories:
            if memory.is_device and memory.place != owner:
                return caps.startup if caps.peer_startup is None else caps.peer_startup
        only_writes = {"write"} == set(map(itemgetter(2), transfer.legs()))
        own = caps.write_startup if only_writes else None
        return caps.startup if own is None else own


def _beside(kind: LinkKind, engine: EngineKind, access: Access) -> float:
    # Kernels may have a limit of their own for opposite accesses.
    limit = kind.both_each.get(access)
    if limit is None or engine != "sm" or kind.sm_both_each is None:
        return 1.0
    own = kind.sm_both_each.get(access)
    return limit / own if own is not None else 0.0


def _opposite(resource: Resource) -> Resource:
    number, side, *rest = resource
    return number, _OPPOSITE[side], *rest


def names_of(link: SimLink) -> frozenset[str]:
    """Returns the link's own name, and the names of its ends in either order."""
    return frozenset((link.name, f"{link.a}-{link.b}", f"{link.b}-{link.a}"))


# Transfers, and cells, that differ only in the names of the parts that they use.


class Way(NamedTuple):
    """How a transfer moves. `form` is equal for transfers that differ only in names. `names` has
    parts and resources in the order of first use. Kernels of the device `queue` run one by one."""

    form: bytes
    names: tuple[Hashable, ...]
    queue: str | None


def way_of(transfer: Transfer, demand: Demand, capacity: Mapping[Resource, float]) -> Way:
    """Returns how a transfer moves. The form of the result has numbers in place of names.
    `capacity` has the rate of each resource in bytes/s."""
    number = numbering()
    form = (
        transfer.engine.kind,
        transfer.engine.count,
        transfer.scale,
        transfer.both_ways,
        transfer.load,
        *((one.space, one.kind, number[one.place]) for one in transfer.named),
        tuple((number[name], weight, capacity[name]) for name, weight in demand.flow.usage),
        # A link's limit for one access counts while another transfer makes the opposite access.
        tuple(
            (number[name[0]], name[1:], weight, capacity[name]) for name, weight in demand.opposed
        ),
        demand.flow.cap,
        demand.startup,
        demand.queue and number[demand.queue],
        demand.jitter,
    )
    return Way(_digest(form), tuple(number), demand.queue)


# Thousands of transfers have the same few.
@lru_cache(maxsize=1 << 12)
def _digest(form: Hashable) -> bytes:
    return blake2b(repr(form).encode(), digest_size=8).digest()


class Likeness(NamedTuple):
    """Identifies equivalent cells. `key` is equal for cells that differ only in names. `order` has
    the indices of a cell's transfers, so ordered that transfers of equivalent cells correspond."""

    key: Hashable
    order: tuple[int, ...]


def likeness_of(ways: Sequence[Way]) -> Likeness:
    """Returns the likeness of a cell: cells with the same key use equivalent resources."""
    if len(ways) == 1:
        return Likeness(ways[0].form, (0,))
    order = list(range(len(ways)))
    queues = [way.queue for way in ways if way.queue is not None]
    if len(queues) == len(set(queues)):  # else the order matters: a device runs several kernels
        order = sharing_first([way.names for way in ways])
    names = chain.from_iterable([ways[at].names for at in order])
    pattern = tuple(map(numbering().__getitem__, names))
    return Likeness((tuple([ways[at].form for at in order]), pattern), tuple(order))

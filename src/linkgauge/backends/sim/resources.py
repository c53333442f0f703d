"""What can be full on a simulated machine, and what each transfer takes of it."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Set
from functools import cache
from itertools import product

import msgspec

from linkgauge.model.map import Crossing, Flow, Resource
from linkgauge.model.transfer import Access, Engine, EngineKind, Memory, Transfer

from .description import Caps
from .hardware import Hardware, SimLink
from .topology import Route, Topology

_THREAD_STARTUP = 1e-6
"""Seconds until host threads run."""
_STAGED = 2.0
"""What staging a byte takes of a node's memory more than the byte that is read or written there."""

_ENGINES: tuple[tuple[str, str], ...] = tuple(product(("ce", "sm"), ("read", "write")))
_WAYS = (False, True)


class Demand(msgspec.Struct, frozen=True):
    """A transfer as time sees it: its flow (payload bytes a second), seconds that a loop takes to
    start, and the device at whose kernels it queues. `touched` are the names that a fault may be
    aimed at; `jitter` is the relative standard deviation that its links add."""

    flow: Flow
    startup: float
    queue: str | None
    touched: frozenset[str]
    jitter: float


class Resources:
    """`capacity` of each resource in bytes/s (of turns, 1), `names` what each belongs to: a link by
    its names and its ends, a device, a node. Resources are a memory, by its name; an engine of a
    device for reading and for writing; of a link by its number, each direction (forward or not) and
    both together. Of a link to a node that takes turns, also: threads that leave or come there,
    beside devices that send or fetch over the link."""

    def __init__(self, hardware: Hardware, topology: Topology) -> None:
        self._hardware = hardware
        self._topology = topology
        self._links = hardware.links
        self.capacity: dict[Resource, float] = {}
        self.names: dict[Resource, frozenset[str]] = {}
        self._turns = {
            node.name: [n for n, link in enumerate(self._links) if node.name in (link.a, link.b)]
            for node in hardware.nodes
            if node.group.turns
        }
        for number, link in enumerate(hardware.links):
            names = names_of(link) | {link.a, link.b}
            for which, rate in ((True, link.rate), (False, link.rate), ("both", link.common.both)):
                self._add((number, which), rate, names)
            for turn in product(_WAYS, _WAYS) if self._turns.keys() & {link.a, link.b} else ():
                # A link that fails does not stop those of others.
                self._add((number, *turn), 1.0, frozenset())
        for device in hardware.devices:
            group = device.group
            self._add(device.name, group.memory_rate, {device.name})
            for kind, access in _ENGINES:
                rate = getattr(getattr(group, kind), access)
                self._add((device.name, kind, access), rate, {device.name})
        for node in hardware.nodes:
            self._add(node.name, node.group.rate, {node.name})
        self.demand = cache(self._demand)

    def _add(self, resource: Resource, rate: float | None, names: Set[str]) -> None:
        """What has no rate is never full."""
        if rate is not None:
            self.capacity[resource] = rate
            self.names[resource] = frozenset(names)

    def _demand(self, transfer: Transfer, threads: int, thread: float) -> Demand:
        """What the transfer takes of each resource for a byte of payload; of host threads, each
        of the `threads` moves at most `thread` bytes/s."""
        engine = transfer.engine
        usage: defaultdict[Resource, float] = defaultdict(float)
        touched = {str(engine.owner)}
        jitters = [0.0]
        is_cpu = engine.kind == "cpu"
        cap = threads * thread if is_cpu else math.inf
        for memory in transfer.memories:
            touched.add(str(memory.place))
            usage[str(memory.place)] += 1.0
            if memory.kind == "pageable" and not is_cpu:
                # A thread copies it to or from a pinned buffer, which the engine uses instead.
                usage[str(memory.place)] += _STAGED
                cap = thread
        for source, target, way, part in transfer.legs():
            route = self._route(source, target)
            jitters.append(route.jitter)
            for crossing in route.crossings:
                touched |= self.names[crossing.number, True]
            self._cross(usage, route, engine.kind, way, part)
            if not is_cpu:
                usage[str(engine.owner), engine.kind, way] += part
                if way == "read" and source.is_device:
                    cap = min(cap, self._caps(engine).peer_read or math.inf)
        bounded = ((r, weight) for r, weight in usage.items() if r in self.capacity)
        return Demand(
            Flow(tuple(bounded), cap),
            _THREAD_STARTUP if is_cpu else self._startup(transfer),
            str(engine.owner) if engine.kind == "sm" else None,
            frozenset(touched),
            math.hypot(*jitters),
        )

    def touched(self, transfer: Transfer) -> frozenset[str]:
        """The names that a fault may be aimed at to strike the transfer: of its memories, of its
        engine's owner, of the links that it crosses and of their ends."""
        return self.demand(transfer, 0, 0.0).touched

    @property
    def targets(self) -> tuple[str, ...]:
        """Every name that a fault may be aimed at."""
        links = sorted(frozenset[str]().union(*map(names_of, self._hardware.links)))
        return (*self._hardware.names, *links)

    def latency(self, memory: Memory, owner: Memory) -> float:
        """Seconds of one access of `owner` to `memory`: there, in it, and back."""
        index = memory.index or 0
        if memory.is_host:
            own = self._hardware.nodes[index].group.latency
        else:
            own = self._hardware.devices[index].group.memory_latency
        return own + self._route(owner, memory.place).latency

    def _route(self, source: Memory, target: Memory) -> Route:
        route = self._topology.route(str(source), str(target))
        return route or Route((), 0.0, 0.0)  # none: such transfers are refused

    def _cross(
        self,
        usage: dict[Resource, float],
        route: Route,
        engine: EngineKind,
        way: Access,
        part: float,
    ) -> None:
        """Adds what a route takes: payload and its overhead one way, requests the other way."""
        for crossing in route.crossings:
            link = self._links[crossing.number]
            kind = link.common
            ways = (kind.sm_efficiency if engine == "sm" else None) or kind.efficiency
            ahead = part * crossing.share / getattr(ways, way)
            returns = (kind.sm_reverse if engine == "sm" else None) or kind.reverse
            back = part * crossing.share * getattr(returns, way)
            for turn in self._turns_of(crossing, engine == "cpu"):
                usage[turn] += ahead / link.rate
            usage[crossing.number, crossing.forward] += ahead
            usage[crossing.number, "both"] += ahead + back
            if back:
                usage[crossing.number, not crossing.forward] += back

    def _turns_of(self, crossing: Crossing, by_threads: bool) -> Iterator[Resource]:
        """The turns that are taken at either end of a link: a device's of those over the link, the
        threads' of those over all other links there."""
        link = self._links[crossing.number]
        for end, inward in ((link.a, not crossing.forward), (link.b, crossing.forward)):
            for number in self._turns.get(end, ()):
                if by_threads == (number != crossing.number):
                    for other in _WAYS:
                        yield (number, inward, other) if by_threads else (number, other, inward)

    def _caps(self, engine: Engine) -> Caps:
        group = self._hardware.devices[engine.owner.index or 0].group
        return group.sm if engine.kind == "sm" else group.ce

    def _startup(self, transfer: Transfer) -> float:
        """Seconds until an engine of a device moves the first byte."""
        caps, owner = self._caps(transfer.engine), transfer.engine.owner
        own: float | None = None
        if any(memory.is_device and memory.place != owner for memory in transfer.memories):
            own = caps.peer_startup
        elif {way for _, _, way, _ in transfer.legs()} == {"write"}:
            own = caps.write_startup
        return caps.startup if own is None else own


def names_of(link: SimLink) -> frozenset[str]:
    """The names of a link: the one it was given, and its ends in either order."""
    return frozenset((link.name, f"{link.a}-{link.b}", f"{link.b}-{link.a}"))

"""What can be full on a simulated machine, and what each transfer takes of it."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence

import msgspec

from linkgauge.model.flow import Flow
from linkgauge.model.transfer import Access, Memory, Transfer

from .description import Back, Caps, Ways
from .hardware import Hardware, Link
from .topology import Route, Topology

_THREAD_STARTUP = 1e-6
"""Seconds until host threads run."""

_SLOTS: dict[tuple[str, str], int] = {
    ("ce", "read"): 1,
    ("ce", "write"): 2,
    ("sm", "read"): 3,
    ("sm", "write"): 4,
}
"""Of a device's resources, the first is its memory, then these."""
_PER_LINK = 3
_PER_DEVICE = 1 + len(_SLOTS)


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
    """`capacity` of each resource in bytes/s, `names` what each belongs to: a link by its names
    and its ends, a device, a node."""

    def __init__(self, hardware: Hardware, topology: Topology) -> None:
        self._hardware = hardware
        self._topology = topology
        self._links = hardware.links
        self._first_device = _PER_LINK * len(hardware.links)
        self._first_node = self._first_device + _PER_DEVICE * len(hardware.devices)
        capacity: list[float] = []
        names: list[frozenset[str]] = []
        for link in hardware.links:
            capacity += [link.rate, link.rate, math.inf if link.both is None else link.both]
            names += [names_of(link) | {link.a, link.b}] * _PER_LINK
        for device in hardware.devices:
            group = device.group
            caps = (getattr(getattr(group, kind), way) for kind, way in _SLOTS)
            rates = (group.memory_rate, *caps)
            capacity += [math.inf if rate is None else rate for rate in rates]
            names += [frozenset((device.name,))] * _PER_DEVICE
        for node in hardware.nodes:
            capacity.append(node.group.rate)
            names.append(frozenset((node.name,)))
        self.capacity: Sequence[float] = capacity
        self.names: Sequence[frozenset[str]] = names
        self._known: dict[tuple[Transfer, int], Demand] = {}

    def demand(self, transfer: Transfer, threads: int, thread: float) -> Demand:
        """What the transfer takes of each resource for a byte of payload; of host threads, each
        of the `threads` moves at most `thread` bytes/s."""
        key = (transfer, threads)
        if key not in self._known:
            self._known[key] = self._demand(transfer, threads, thread)
        return self._known[key]

    def _demand(self, transfer: Transfer, threads: int, thread: float) -> Demand:
        engine = transfer.engine
        usage: defaultdict[int, float] = defaultdict(float)
        touched = {str(engine.owner)}
        jitters = [0.0]
        for memory in transfer.memories:
            touched.add(str(memory.place))
            usage[self._memory_slot(memory.place)] += 1.0
        for source, target, way, part in transfer.legs():
            route = self._route(source, target)
            jitters.append(route.jitter)
            for crossing in route.crossings:
                touched |= self.names[_PER_LINK * crossing.link]
            self._cross(usage, route, engine.kind == "sm", way, part)
            slot = _SLOTS.get((engine.kind, way))
            if slot is not None:
                usage[self._device_slot(engine.owner) + slot] += part
        bounded = ((r, weight) for r, weight in usage.items() if self.capacity[r] != math.inf)
        is_cpu = engine.kind == "cpu"
        return Demand(
            Flow(tuple(sorted(bounded)), threads * thread if is_cpu else math.inf),
            _THREAD_STARTUP if is_cpu else self._caps(engine.owner, engine.kind).startup,
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
        self, usage: dict[int, float], route: Route, kernel: bool, way: Access, part: float
    ) -> None:
        """Adds what a route takes: payload and its overhead one way, requests the other way."""
        for crossing in route.crossings:
            kind = self._links[crossing.link].kind
            ways = (kind.sm_efficiency if kernel else None) or kind.efficiency
            ahead = part * crossing.share / _of(ways, way)
            returns = (kind.sm_reverse if kernel else None) or kind.reverse
            back = part * crossing.share * _of(returns, way)
            first = _PER_LINK * crossing.link
            usage[first + (not crossing.forward)] += ahead
            usage[first + 2] += ahead + back
            if back:
                usage[first + crossing.forward] += back

    def _caps(self, owner: Memory, kind: str) -> Caps:
        group = self._hardware.devices[owner.index or 0].group
        return group.sm if kind == "sm" else group.ce

    def _device_slot(self, device: Memory) -> int:
        return self._first_device + _PER_DEVICE * (device.index or 0)

    def _memory_slot(self, place: Memory) -> int:
        return self._first_node + (place.index or 0) if place.is_host else self._device_slot(place)


def names_of(link: Link) -> frozenset[str]:
    """The names of a link: the one it was given, and its ends in either order."""
    return frozenset((link.name, f"{link.a}-{link.b}", f"{link.b}-{link.a}"))


def _of(ways: Ways | Back, way: Access) -> float:
    return ways.read if way == "read" else ways.write

"""Computes how long a collective takes on a simulated machine. A collective consists of exchanges.
Each is a copy by a kernel that writes, and shares links with the others."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import zip_longest

import msgspec

from linkgauge.backends.protocol import Copy
from linkgauge.model.errors import Unsupported
from linkgauge.model.hardware.map import Resource, share
from linkgauge.model.memory import Memory
from linkgauge.model.operations.collective import Algorithm, Collective
from linkgauge.model.operations.exchanges import (
    SWITCH,
    Phase,
    Way,
    phases,
    ring_orders,
    ways,
)
from linkgauge.model.transfer import Engine, Transfer

from .description import Exchanges
from .resources import Demand, Resources
from .topology import SimTopology


class SentBytes(msgspec.Struct, frozen=True):
    """The bytes that one rank writes into another rank's memory. Instead of a rank, either end may
    be SWITCH, a switch of the fabric."""

    source: int
    target: int
    bytes: float
    demand: Demand


class ExchangeStage(msgspec.Struct, frozen=True):
    """Exchanges that a group of ranks makes at the same time. They are repeated `steps` times."""

    steps: int
    sent: tuple[SentBytes, ...]

    @property
    def starts(self) -> float:
        """Returns the seconds that its steps take to start."""
        return max(sent.demand.startup for sent in self.sent) * self.steps

    def alone(self, capacity: Mapping[Resource, float]) -> float:
        """Returns the seconds that it takes if no other group sends anything."""
        rates = share([sent.demand.flow for sent in self.sent], capacity)
        moving = max(sent.bytes / rate for sent, rate in zip(self.sent, rates, strict=True))
        return self.starts + moving


class Exchanging:
    """The exchanges of a collective on a simulated machine. `copies` has one transfer for each
    rank. `exchanges` says how bytes move. The attribute `groups` has the ranks of each group, and
    `ranks` the demand of each rank. Raises Unsupported if two ranks that exchange bytes are not
    linked."""

    def __init__(
        self,
        copies: Sequence[Copy],
        work: Collective,
        resources: Resources,
        topology: SimTopology,
        exchanges: Exchanges,
    ) -> None:
        self._places = [copy.transfer.engine.owner for copy in copies]
        self._resources = resources
        self._topology = topology
        self._hosts = {device.name: device.node for device in topology.devices}
        self._work = work
        self._exchanges = exchanges
        self.groups = work.groups(len(copies))
        self._size = copies[0].size
        try:
            self._stages = list(map(self._fastest, self.groups))
        except ValueError as error:
            raise Unsupported(str(error)) from error
        self.ranks = tuple(map(self._rank, range(len(copies))))

    def _fastest(self, group: Sequence[int]) -> list[ExchangeStage]:
        """Returns the stages of the way that is fastest on healthy links, as libraries choose it
        before they know of faults."""
        found = [
            [
                self._stage(phase, group, way.algorithm)
                for phase in phases(self._work, self._size, len(group), way)
            ]
            for way in self._ways(group)
        ]
        capacity = self._resources.capacity
        return min(found, key=lambda one: sum(stage.alone(capacity) for stage in one))

    def _ways(self, group: Sequence[int]) -> Iterator[Way]:
        """Yields the ways that the description allows."""
        how = self._exchanges
        if how.rings is not None or how.algorithm == "tree":
            yield Way(how.algorithm, ring_orders(len(group), how.rings or 1))
            return
        places = [str(self._places[rank]) for rank in group]
        yield from ways(
            self._work,
            len(group),
            lambda one, other: self._topology.links(places[one], places[other]),
            lambda: how.algorithm == "nvls" and self._topology.in_one_fabric(places),
            tuple(self._hosts.get(place) for place in places),
        )

    def _stage(self, phase: Phase, group: Sequence[int], algorithm: Algorithm) -> ExchangeStage:
        how = self._exchanges
        part = (how.reductions if algorithm == "nvls" else None) or how.efficiency
        sent = []
        for each in phase.exchanges:
            source, target = (SWITCH if end == SWITCH else group[end]
                              for end in (each.source, each.target))  # fmt: skip
            sent.append(SentBytes(source, target, each.bytes, self._between(source, target, part)))
        return ExchangeStage(phase.steps, tuple(sent))

    def _between(self, source: int, target: int, part: float) -> Demand:
        """Returns what one exchange demands of the machine. It reaches this part of the links'
        rates: the lower it is, the more of each link it needs."""
        if SWITCH in (source, target):
            rank = self._places[source if target == SWITCH else target]
            demand = self._resources.in_switch(rank, inward=target == SWITCH)
        else:
            demand = self._demand(self._places[source], self._places[target])
        usage = tuple((name, weight / part) for name, weight in demand.flow.usage)
        flow = msgspec.structs.replace(demand.flow, usage=usage)
        return msgspec.structs.replace(demand, flow=flow)

    def _demand(self, source: Memory, target: Memory) -> Demand:
        if self._topology.route(str(source), str(target)) is None:
            raise Unsupported(f"no link leads from {source} to {target}")
        return self._resources.demand(Transfer(source, target, Engine(source, "sm")), 0, 0.0)

    def _rank(self, number: int) -> Demand:
        """Returns what a rank demands of the machine. Faults of its own device affect the rank. So
        do faults of the links over which the rank receives."""
        own = self._demand(self._places[number], self._places[number])
        coming = [sent.demand for sent in self._all() if sent.target == number]
        others = {str(place) for place in self._places} - {str(self._places[number])}
        touched = own.touched.union(*(demand.touched for demand in coming)) - others
        jitter = max((demand.jitter for demand in coming), default=0.0)
        return msgspec.structs.replace(own, touched=touched, jitter=jitter)

    def _all(self) -> Iterator[SentBytes]:
        for stages in self._stages:
            for stage in stages:
                yield from stage.sent

    @property
    def demands(self) -> tuple[Demand, ...]:
        """Returns the demands of all exchanges and all ranks."""
        return (*(sent.demand for sent in self._all()), *self.ranks)

    def seconds(self, capacity: Mapping[Resource, float]) -> tuple[float, ...]:
        """Returns the seconds of one iteration for each rank. Each step takes its startup time and
        the time to move the bytes. All ranks of a group wait for the slowest."""
        taken = [self._alone(group, capacity) for group in self.groups]
        for stages in zip_longest(*self._stages):
            present = [stage for stage in stages if stage is not None]
            flows = [sent.demand.flow for stage in present for sent in stage.sent]
            rates = iter(share(flows, capacity))
            for number, stage in enumerate(stages):
                if stage is None:
                    continue
                moving = max(sent.bytes / next(rates) for sent in stage.sent)
                taken[number] += stage.starts + moving * self._work.aggregated
        found = [0.0] * len(self._places)
        for group, seconds in zip(self.groups, taken, strict=True):
            for rank in group:
                found[rank] = seconds
        return tuple(found)

    def _alone(self, group: Sequence[int], capacity: Mapping[Resource, float]) -> float:
        """Returns the seconds of a rank that is alone in its group: those of a copy between its own
        buffers. Returns 0 for larger groups."""
        if len(group) > 1:
            return 0.0
        own = self.ranks[group[0]]
        if self._work.in_place:
            return own.startup
        (rate,) = share([own.flow], capacity)
        return own.startup + self._size / rate * self._work.aggregated

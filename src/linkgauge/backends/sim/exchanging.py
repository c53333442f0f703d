"""The time of a collective: its exchanges are copies by the senders' kernels, and share links."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice, zip_longest
from typing import NamedTuple

from msgspec.structs import replace

from linkgauge.backends.protocol import Copy
from linkgauge.model.errors import Unsupported
from linkgauge.model.hardware.map import Flow, Resource, share
from linkgauge.model.operations.collective import Collective
from linkgauge.model.operations.exchanges import SWITCH, Exchange, Way, phases, ring_orders, ways
from linkgauge.model.transfer import Engine, Transfer

from .resources import Demand, Resources


class _Stage(NamedTuple):
    steps: int
    sent: tuple[tuple[Exchange, Demand], ...]

    def seconds(self, rates: Iterable[float], calls: int = 1) -> float:
        starts = max(demand.startup for _, demand in self.sent) * self.steps
        moving = max(each.bytes / rate for (each, _), rate in zip(self.sent, rates, strict=True))
        return starts + moving * calls


class Exchanging:
    """`copies` has one transfer for each rank. Raises Unsupported if ranks that exchange bytes are
    not linked."""

    def __init__(
        self,
        copies: Sequence[Copy],
        work: Collective,
        resources: Resources,
    ) -> None:
        self._places = [copy.transfer.engine.owner for copy in copies]
        self._resources, self._topology = resources, resources.topology
        self._hosts = {device.name: device.node for device in resources.hardware.devices}
        self._work, self._exchanges = work, resources.hardware.description.collectives
        self._groups = work.groups(len(copies))
        self._size = copies[0].size
        try:
            self._stages = list(map(self._fastest, self._groups))
        except ValueError as error:
            raise Unsupported(str(error)) from error
        self.ranks = tuple(map(self._rank, range(len(copies))))

    def _fastest(self, group: Sequence[int]) -> list[_Stage]:
        """Returns the fastest way on healthy links: libraries choose it without knowing faults."""
        if len(group) < 2:
            (rank,) = group
            own = Exchange(rank, rank, 0.0 if self._work.in_place else float(self._size))
            return [_Stage(1, ((own, self._demand(rank, rank)),))]
        found = [
            [
                _Stage(phase.steps, tuple(self._sent(each, group, way) for each in phase.exchanges))
                for phase in phases(self._work, self._size, len(group), way)
            ]
            for way in self._ways(group)
        ]
        capacity = self._resources.capacity
        return min(found, key=lambda one: sum(s.seconds(share(_flows([s]), capacity)) for s in one))

    def _ways(self, group: Sequence[int]) -> Iterator[Way]:
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

    def _sent(self, each: Exchange, group: Sequence[int], way: Way) -> tuple[Exchange, Demand]:
        """Returns an exchange and its demand. A lower efficiency takes more of each link."""
        how = self._exchanges
        part = (how.reductions if way.algorithm == "nvls" else None) or how.efficiency
        source, target = (SWITCH if end == SWITCH else group[end]
                          for end in (each.source, each.target))  # fmt: skip
        demand = self._demand(source, target)
        usage = tuple((name, weight / part) for name, weight in demand.flow.usage)
        demand = replace(demand, flow=replace(demand.flow, usage=usage))
        return Exchange(source, target, each.bytes), demand

    def _demand(self, source: int, target: int) -> Demand:
        if SWITCH in (source, target):
            rank = self._places[source if target == SWITCH else target]
            return self._resources.in_switch(rank, inward=target == SWITCH)
        one, other = self._places[source], self._places[target]
        if self._topology.route(str(one), str(other)) is None:
            raise Unsupported(f"no link leads from {one} to {other}")
        return self._resources.demand(Transfer(one, other, Engine(one, "sm")), 0)

    def _rank(self, number: int) -> Demand:
        own = self._demand(number, number)
        coming = [demand for each, demand in self._all() if each.target == number]
        others = {str(place) for place in self._places} - {str(self._places[number])}
        touched = own.touched.union(*(demand.touched for demand in coming)) - others
        jitter = max((demand.jitter for demand in coming), default=0.0)
        return replace(own, touched=touched, jitter=jitter)

    def _all(self) -> Iterator[tuple[Exchange, Demand]]:
        for stage in chain.from_iterable(self._stages):
            yield from stage.sent

    @property
    def demands(self) -> tuple[Demand, ...]:
        return (*(demand for _, demand in self._all()), *self.ranks)

    def seconds(self, capacity: Mapping[Resource, float]) -> tuple[float, ...]:
        """Returns each rank's seconds, startups included. Ranks of a group wait for the slowest."""
        taken = dict.fromkeys(range(len(self._places)), 0.0)
        for stages in zip_longest(*self._stages):
            present = {at: stage for at, stage in enumerate(stages) if stage is not None}
            rates = iter(share(_flows(present.values()), capacity))
            for at, stage in present.items():
                own = islice(rates, len(stage.sent))
                seconds = stage.seconds(own, self._work.aggregated)
                taken |= {rank: taken[rank] + seconds for rank in self._groups[at]}
        return tuple(taken.values())


def _flows(stages: Iterable[_Stage]) -> list[Flow]:
    return [demand.flow for stage in stages for _, demand in stage.sent]

"""Computes how long a collective takes on a simulated machine. The exchanges of a collective are
flows of kernels that write, and share the links on their routes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import zip_longest

import msgspec

from linkgauge.backends.protocol import Copy
from linkgauge.model.errors import Unsupported
from linkgauge.model.hardware.map import Resource, share
from linkgauge.model.memory import Memory
from linkgauge.model.operations.collective import Collective
from linkgauge.model.operations.exchanges import SWITCH, Algorithm, Phase, phases
from linkgauge.model.transfer import Engine, Transfer

from .description import Exchanges
from .resources import Demand, Resources
from .topology import SimTopology


class SentBytes(msgspec.Struct, frozen=True):
    """The bytes that one rank of a cell writes into another rank's memory. Either end may be
    SWITCH, a switch of the fabric."""

    source: int
    target: int
    bytes: float
    demand: Demand


class ExchangeStage(msgspec.Struct, frozen=True):
    """The exchanges that a group makes at the same time, repeated in `steps` steps."""

    steps: int
    sent: tuple[SentBytes, ...]


class Exchanging:
    """A collective of ranks whose parts are `copies`. `exchanges` says how the bytes move. `groups`
    has the ranks of each group, `ranks` the demand of each rank's part. Raises Unsupported if no
    link joins two ranks that exchange bytes."""

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
        self._work = work
        self._exchanges = exchanges
        self.groups = work.groups(len(copies))
        algorithm: Algorithm = exchanges.algorithm
        if algorithm == "nvls" and not all(topology.to_switches(str(p)) for p in self._places):
            algorithm = "ring"
        try:
            self._stages = [
                [
                    self._stage(phase, group)
                    for phase in phases(
                        work, copies[0].size, len(group), algorithm, exchanges.rings
                    )
                ]
                for group in self.groups
            ]
        except ValueError as error:
            raise Unsupported(str(error)) from error
        self._size = copies[0].size
        self.ranks = tuple(map(self._rank, range(len(copies))))

    def _stage(self, phase: Phase, group: Sequence[int]) -> ExchangeStage:
        sent = []
        for each in phase.exchanges:
            source, target = (SWITCH if end == SWITCH else group[end]
                              for end in (each.source, each.target))  # fmt: skip
            sent.append(SentBytes(source, target, each.bytes, self._between(source, target)))
        return ExchangeStage(phase.steps, tuple(sent))

    def _between(self, source: int, target: int) -> Demand:
        """Returns the demand of one exchange. A lower efficiency makes an exchange use more of each
        link."""
        if SWITCH in (source, target):
            rank = self._places[source if target == SWITCH else target]
            demand = self._resources.in_switch(rank, inward=target == SWITCH)
        else:
            demand = self._demand(self._places[source], self._places[target])
        part = float(self._exchanges.efficiency)
        usage = tuple((name, weight / part) for name, weight in demand.flow.usage)
        flow = msgspec.structs.replace(demand.flow, usage=usage)
        return msgspec.structs.replace(demand, flow=flow)

    def _demand(self, source: Memory, target: Memory) -> Demand:
        if self._topology.route(str(source), str(target)) is None:
            raise Unsupported(f"no link leads from {source} to {target}")
        return self._resources.demand(Transfer(source, target, Engine(source, "sm")), 0, 0.0)

    def _rank(self, number: int) -> Demand:
        """Returns the demand of a rank. Faults of the rank's device, and of the links over which it
        receives, affect the rank; faults of the sending devices do not."""
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
        """Returns the seconds of one iteration, by rank. Each step takes its startup time. The
        bytes of all aggregated calls move at the rates that the flows have in this step. All ranks
        of a group wait for the slowest rank."""
        taken = [self._alone(group, capacity) for group in self.groups]
        for stages in zip_longest(*self._stages):
            present = [stage for stage in stages if stage is not None]
            flows = [sent.demand.flow for stage in present for sent in stage.sent]
            rates = iter(share(flows, capacity))
            for number, stage in enumerate(stages):
                if stage is None:
                    continue
                starts = max(sent.demand.startup for sent in stage.sent) * stage.steps
                moving = max(sent.bytes / next(rates) for sent in stage.sent)
                taken[number] += starts + moving * self._work.aggregated
        found = [0.0] * len(self._places)
        for group, seconds in zip(self.groups, taken, strict=True):
            for rank in group:
                found[rank] = seconds
        return tuple(found)

    def _alone(self, group: Sequence[int], capacity: Mapping[Resource, float]) -> float:
        """Returns the seconds of a rank that is the only rank of its group; 0 for larger groups.
        Such a rank copies from the send buffer, if there is one."""
        if len(group) > 1:
            return 0.0
        own = self.ranks[group[0]]
        if self._work.in_place:
            return own.startup
        (rate,) = share([own.flow], capacity)
        return own.startup + self._size / rate * self._work.aggregated

"""How a simulated machine is measured. Bytes really move, while simulated time passes."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from contextlib import ExitStack
from functools import cache
from operator import attrgetter, itemgetter
from typing import TYPE_CHECKING

from msgspec.structs import replace

from linkgauge.backends.offering import Filling, own
from linkgauge.backends.protocol import RESULTS, Buffer, Copy, SamplingPolicy, single_iterations
from linkgauge.backends.rules import check_alone, of_exchange, refused
from linkgauge.model.by_name import by_name
from linkgauge.model.errors import Phase, Unsupported
from linkgauge.model.hardware.inventory import Accelerator, Inventory, Telemetry
from linkgauge.model.hardware.machine import Device, Host
from linkgauge.model.hardware.map import Flow
from linkgauge.model.hardware.motion import FlowWork, Movement, movements, steady
from linkgauge.model.hardware.network import NetworkCounters
from linkgauge.model.memory import Memory, host
from linkgauge.model.notes import STAGED
from linkgauge.model.operations.collective import Collective
from linkgauge.model.operations.operation import (
    ARRAY_NAMES,
    PEAK_NAMES,
    PRODUCT_NAMES,
    Operation,
    OperationName,
    named,
    operations_of,
    order_of,
)
from linkgauge.model.settings import EngineSettings, Simulation
from linkgauge.model.transfer import Cell, Engine, Transfer

from . import inventory, pci, refusals
from .faults import Fault, Stall
from .machine import SimMachine, built, faults_of
from .memory import SimBuffer, SimGroup
from .quantities import Fraction
from .resources import Demand, Likeness, Resources, Way, likeness_of, way_of
from .run_position import Noise, RunPosition
from .sensors import SimTelemetry, Symptoms, adapters, network_counters, switch_links
from .trouble import Trouble

if TYPE_CHECKING:
    from .exchanging import SimCollective

STRIDE = 128
"""The distance of pointers in a chase in bytes, as in nvbandwidth."""


def simulate(
    simulation: Simulation, engines: EngineSettings, cpus: Sequence[int] = ()
) -> SimBackend:
    """Returns the backend of a simulated machine. `cpus` are the CPUs to use; if empty, all.
    `engines` has no effect. Raises InputError for an invalid description or fault."""
    parts, faults = built(simulation.description, tuple(cpus)), faults_of(simulation)
    return SimBackend(parts, faults, simulation.draw, simulation.passed)


class SimBackend(SimMachine, Filling[SimBuffer]):
    name = refusals.SPACE
    collects = True
    carried = (
        "copy", "bulk-copy", "chase", "bulk-chase", "enqueue", "ping-pong", "copy-ping-pong",
        "flag-ping-pong", "timed-copy", "overlap", *PEAK_NAMES, *PRODUCT_NAMES,
    )  # fmt: skip

    def __init__(
        self, parts: Resources, faults: Sequence[Fault] = (), draw: int = 0, passed: int = 0
    ) -> None:
        super().__init__(parts, faults)
        if (
            self._description.known is not None
        ):  # how threads carry out STREAM's loops is measured alone
            self.carried, self.has_own_arrays = (*self.carried, *ARRAY_NAMES), False
        self.refusal = cache(self._refusal)
        self._way_of = cache(self._way)
        self.forget_ways = self._way_of.cache_clear
        self._course = RunPosition(self._description.seed, draw)
        self._trouble = Trouble(self.faults, self._resources, self.touched)
        self._stall = self._trouble.stall if Stall in map(type, faults) else None
        self._sensors = SimTelemetry(self._hardware)
        self._looked: Inventory | None = None
        self.draw: int | None = None
        """Chooses the random numbers of a repetition, with the cells of earlier runs. None chooses
        them by the cell's number."""
        self.equivalent: Hashable = None
        """The key of the likeness of the cell that is measured; None if it is not known."""
        self._solved: dict[Hashable, tuple[tuple[Movement, ...], list[Noise]]] = {}
        """The movement and the relative noise of each copy."""
        self._passed = self._at = self._cells = passed
        """The number of cells passed, including the current cell, and the highest number so far."""
        self._room: dict[Memory, int] = {}
        for node in self._hardware.nodes:
            self._room[host(node.index)] = int(node.group.memory)
        self._devices: list[Device] = []
        for unit in self._hardware.devices:
            size = self._room[Memory(self.name, unit.index)] = int(unit.group.memory)
            self._devices.append(
                by_name(
                    Device, unit, unit.group, memory=unit.name, near=self._topology.node_of(unit),
                    memory_bytes=size, largest_buffer=size,
                )
            )  # fmt: skip

    def devices(self) -> tuple[Device, ...]:
        return tuple(self._devices)

    def host(self) -> Host:
        return inventory.host(self._hardware)

    def look(self) -> Inventory:
        """Returns all facts of the machine, as they are after the cells measured so far."""
        symptoms = Symptoms(self.faults, self._cells)
        virtual = self._description.host.hypervisor is not None
        functions = pci.functions(self._hardware, self._topology, symptoms, grouped=not virtual)
        grouped = bool(functions) and not virtual
        ports = list(adapters(self._hardware, self._topology))
        found = Inventory(
            host=inventory.details(self._hardware, self._topology, in_groups=grouped),
            pci=functions,
            accelerators=tuple(self._sensors.accelerators(symptoms)),
            switch_links=switch_links(self._hardware),
            routing=self._description.routing,
            assumed=inventory.assumptions(self._hardware, self._topology),
            unknown=pci.unread(self._hardware),
            adapters=tuple(map(itemgetter(0), ports)),
            interfaces=tuple(map(itemgetter(1), ports)),
        )
        if found != self._looked:  # a large cluster's takes much memory
            self._looked = found
        return self._looked

    def network_counters(self) -> tuple[NetworkCounters, ...]:
        """Returns the adapters' present counters; none without faults."""
        if not self.faults or not self._hardware.adapters:
            return ()
        return network_counters(self._hardware, Symptoms(self.faults, self._cells))

    def inventory(self) -> tuple[Accelerator, ...]:
        return tuple(self._sensors.accelerators(Symptoms(self.faults, self._cells)))

    def sense(self, devices: Sequence[Memory]) -> tuple[Telemetry, ...]:
        symptoms = Symptoms(self.faults, self._at) if self.faults else None
        return self._sensors.sense(devices, symptoms)

    def clock(self) -> float:
        return self._course.now

    def enter(
        self,
        cells: Mapping[int, Sequence[Transfer]],
        phase: Phase,
        repetition: int = 0,
        taken: int = 0,
    ) -> None:
        first = self._passed + min(cells)
        self._at = first + 1
        self._cells = max(self._cells, self._at)
        drawn = first if self.draw is None else self._passed + self.draw
        self._course.enter(drawn, phase, repetition, taken)
        if self.faults:
            self._trouble.enter(cells, phase, self._passed)

    def _refusal(self, transfer: Transfer) -> str | Unsupported | None:
        if transfer.source.is_cpu:
            reason = refused(of_exchange(transfer, self._node_of))
            if reason is not None:
                return reason
        placed = self._on_nodes(transfer)
        if placed is not transfer:  # thousands of pairs of CPUs lie in the same few nodes
            return self.refusal(placed)
        where = transfer, self._hardware, self._topology
        return refused(refusals.rules_of(*where)) or refusals.no_access(*where)

    def remarks(self, transfer: Transfer) -> tuple[str, ...]:
        separate = refusals.separate(transfer, self._topology)
        return () if separate is None else (STAGED.text,)

    def reach(self, memory: Memory, engine: Engine) -> object:
        return memory

    def allocate(self, memory: Memory, size: int, engine: Engine) -> SimBuffer:
        return SimBuffer(memory, size, self._room)

    def own(self, buffer: Buffer | None) -> SimBuffer:
        return own(buffer, SimBuffer, self.name)

    def moving(self, copies: Sequence[Copy], does: Operation) -> SimGroup:
        # Equivalent cells of a machine without faults move in the same way.
        is_shared = self.equivalent is not None and not self.faults
        key = (self.equivalent, does.name, len(copies)) if is_shared else None
        known = self._solved.get(key)
        if known is None:
            demands, sigmas = self._demands(copies, does)
            known = self._moving(copies, demands), sigmas
            if key is not None:
                self._solved[key] = known
        makes = RESULTS.get(does.array.kind) if does.array is not None else None
        return SimGroup(copies, *known, self._course, self._stall, makes=makes)

    def returning(self, copy: Copy) -> SimGroup:
        group = self.moving([copy], named("copy-ping-pong"))
        group.policy = single_iterations(1)
        return group

    def computing(
        self, copies: Sequence[Copy], made: ExitStack
    ) -> tuple[None, SimGroup, SimGroup, SimGroup]:
        """Returns None and three groups: a kernel as long as the copies, the copies, and both."""
        demands, sigmas = self._demands(copies, named("overlap"))
        first, *others = copies
        moving = self._moving(others, demands[1:])
        seconds = max(movement.end for movement in moving)
        kernel = replace(demands[0], flow=Flow((), first.size / seconds), startup=0.0)
        copying = SimGroup(others, moving, sigmas[1:], self._course)
        alone = SimGroup([first], [steady(seconds)], sigmas[:1], self._course)
        movements = self._moving(copies, [kernel, *demands[1:]])
        together = SimGroup(copies, movements, sigmas, self._course, self._stall)
        return None, alone, copying, together

    def multiplying(self, copies: Sequence[Copy], does: Operation) -> tuple[SimGroup, None]:
        check_alone(copies)
        demands, sigmas = self._demands(copies, does)
        steps = operations_of(order_of(copies[0].size))
        moving = steady(steps / demands[0].flow.cap)
        return SimGroup(copies, [moving], sigmas, self._course, self._stall), None

    def chasing(self, copies: Sequence[Copy], does: Operation) -> SimGroup:
        check_alone(copies)
        (copy,) = copies
        transfer = copy.transfer
        latency = self._resources.latency(transfer.source, transfer.engine.owner)
        return self._steps(
            copy, latency, SamplingPolicy(loops=1, steps=max(1, copy.size // STRIDE)), does
        )

    def bouncing(self, copy: Copy) -> SimGroup:
        (source, destination), owner = copy.transfer.memories, copy.transfer.engine.owner
        latency = self._resources.latency(source if source != owner else destination, owner)
        # A device polls its flag in the host's memory: two accesses a round trip.
        latency = latency if source.is_host else latency / 2
        return self._steps(copy, latency, single_iterations(2), named("flag-ping-pong"))

    def exchanging(self, copy: Copy) -> SimGroup:
        """Returns a ping-pong of a cache line. Of the two CPUs, only their nodes matter."""
        transfer = self._on_nodes(copy.transfer)
        latency = self._resources.latency(transfer.destination, transfer.source)
        own_node = self._hardware.nodes[transfer.destination.index or 0]
        seconds = latency - own_node.group.latency / 2  # of one way
        return self._steps(copy, seconds, SamplingPolicy(loops=1, steps=2), named("ping-pong"))

    def enqueuing(self, copy: Copy) -> SimGroup:
        if copy.transfer.engine.kind == "cpu":
            raise Unsupported("host threads enqueue nothing")
        call = self._description.host.call
        return self._steps(copy, call, SamplingPolicy(loops=1), named("enqueue"))

    def _steps(
        self, copy: Copy, seconds: float, policy: SamplingPolicy, does: Operation
    ) -> SimGroup:
        _, sigmas = self._demands([copy], does)
        if does.by_host_alone:
            sigmas = [self._description.noise_of([copy], does)]
        moving = [steady(seconds * policy.steps)]
        return SimGroup([copy], moving, sigmas, self._course, self._stall, policy)

    def _demands(
        self, copies: Sequence[Copy], does: Operation
    ) -> tuple[Sequence[Demand], list[Noise]]:
        if self._description.known is not None:
            refusals.check_known(self._description.known, copies, does)
        transfers = [copy.transfer for copy in copies]
        each = [self._demand(one, self._threads(one, transfers), does) for one in transfers]
        demands = self._trouble.begin(copies, self._resources.facing(each))
        return demands, self._sigmas(demands, copies, does)

    def _sigmas(
        self, demands: Sequence[Demand], copies: Sequence[Copy], does: Operation
    ) -> list[Noise]:
        own = self._description.noise_of(copies, does)
        found: list[Noise] = []
        for at, demand in enumerate(demands):
            samples = math.hypot(own.samples, demand.jitter, self._trouble.sigma(at))
            found.append(replace(own, samples=Fraction(samples)))
        return found

    def collecting(self, copies: Sequence[Copy], work: Collective) -> SimCollective:
        from .exchanging import SimCollective  # loaded for collectives alone

        if self._description.known is not None:
            refusals.check_known(self._description.known, copies, named(work))
        exchanging = self._exchanging(copies, work)
        self._trouble.begin(copies, exchanging.ranks)
        seconds = exchanging.seconds(self._trouble.capacity(exchanging.demands))
        sigmas = self._sigmas(exchanging.ranks, copies, named(work))
        flip = self._trouble.flip
        return SimCollective(copies, work, seconds, sigmas, self._course, self._stall, flip)

    def _moving(self, copies: Sequence[Copy], demands: Sequence[Demand]) -> tuple[Movement, ...]:
        all_endless = all(map(attrgetter("endless"), copies))
        works: list[FlowWork] = []
        for copy, of in zip(copies, demands, strict=True):
            repeats = copy.endless and not all_endless
            works.append(FlowWork(of.flow, copy.size, of.startup, of.queue, repeats))
        return movements(works, self._trouble.capacity(demands))

    def _threads(self, transfer: Transfer, together: Sequence[Transfer]) -> int:
        if transfer.engine.kind != "cpu":
            return 0
        engine = self._on_nodes(transfer).engine
        sharing = sum(one.engine.owner == engine.owner for one in together)
        cpus = len(self._hardware.nodes[engine.owner.index or 0].cpus)
        return engine.count or max(1, cpus // sharing)

    def _demand(self, asked: Transfer, threads: int, does: Operation) -> Demand:
        transfer = self._on_nodes(asked)
        if does.product is not None:
            return self._resources.work(transfer.engine.owner, does.product)
        demand = self._resources.demand(transfer, threads)
        return self._resources.concurrent_moving(demand, transfer, does)

    def likeness(self, cell: Cell, size: int) -> Likeness | None:
        """Returns a key that equivalent cells share, or None if this cell must run by itself."""
        does, transfers = cell.does, cell.transfers
        if does.collective is not None or cell.workload is not None or self._description.noises:
            return None
        ways: list[Way] = []
        for one in transfers:
            if self.refusal(one) is not None:
                return None
            if self.faults and self._trouble.aimed(self.touched(one)):
                return None
            try:
                ways.append(self._way_of(one, self._threads(one, transfers), does.name))
            except Unsupported:
                return None
        first = self._on_nodes(transfers[0])
        timed = first.memories if cell.report.is_latency else ()
        latencies = tuple([self._resources.latency(one, first.engine.owner) for one in timed])
        found = likeness_of(ways)
        memories = [one for at in found.order for one in self._on_nodes(transfers[at]).named]
        devices = dict.fromkeys([one.index or 0 for one in memories if one.is_device])
        states = tuple([self._sensors.nameless[index] for index in devices])
        kinds = self._hardware.kinds
        unlike = [kinds.get(str(one.place)) for one in memories] if kinds else ()
        key = size, cell.report, cell.operation, found.key, latencies, states, *unlike
        return Likeness(key, found.order)

    def _way(self, transfer: Transfer, threads: int, operation: OperationName) -> Way:
        demand = self._demand(transfer, threads, named(operation))
        return way_of(transfer, demand, self._resources.capacity)

    def close(self) -> None:
        self.forget_ways()  # before the run is written; buffers are freed one by one
        self._solved.clear()

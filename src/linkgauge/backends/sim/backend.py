"""What a simulated machine does when it measures: bytes move, and virtual time passes."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from functools import cache, cached_property

from msgspec.structs import replace

from linkgauge.backends.iterations import single_iterations
from linkgauge.backends.overlap import OverlapGroup
from linkgauge.backends.protocol import (
    RESULTS,
    Buffer,
    Copy,
    Group,
    Pace,
    Pattern,
)
from linkgauge.backends.rules import (
    check_alone,
    check_copy_engine,
    check_exchanges,
    check_flags,
    check_overlap,
    check_own_arrays,
    check_work,
    exchange_refusal,
    lacking,
)
from linkgauge.model.collective import Collective
from linkgauge.model.errors import BackendError, Phase, Unsupported
from linkgauge.model.inventory import Accelerator, Inventory, Telemetry
from linkgauge.model.machine import Device, Host
from linkgauge.model.map import Flow
from linkgauge.model.matmul import PRODUCTS, operations_of, order_of
from linkgauge.model.memory import Memory, host
from linkgauge.model.motion import Movement, Work, movements, steady
from linkgauge.model.operation import ARRAYS, OperationName, named
from linkgauge.model.settings import EngineSettings, Simulation
from linkgauge.model.transfer import Engine, Transfer

from . import inventory, pci, refusals
from .collecting import CollectiveGroup
from .description import Description
from .exchanging import Exchanging
from .faults import Fault
from .group import SimGroup
from .machine import SimMachine, read
from .memory import MemoryBudget, SimBuffer
from .resources import Demand
from .run_position import RunPosition
from .schedule import Schedule
from .sensors import SimTelemetry, switch_links
from .symptoms import Symptoms
from .trouble import Trouble

STRIDE = 128
"""Bytes between consecutive pointers of a chase, as in nvbandwidth."""
_KNOWN = (
    "copy", "chase", "enqueue", "ping-pong", "copy-ping-pong", "flag-ping-pong", "timed-copy",
    "overlap", *ARRAYS, *PRODUCTS,
)  # fmt: skip


def simulate(
    simulation: Simulation, engines: EngineSettings, cpus: Sequence[int] = ()
) -> SimBackend:
    """The machine of a simulation, of which only these `cpus` may be used (none: all). `engines`
    configures real kernels and has no effect here.

    Raises InputError for an invalid description or fault.
    """
    return SimBackend(*read(simulation), cpus, simulation.draw, simulation.passed)


class SimBackend(SimMachine):
    """A simulated machine's host memories and threads, and its devices, at work."""

    name = refusals.SPACE

    def __init__(
        self,
        description: Description,
        faults: Sequence[Fault] = (),
        cpus: Sequence[int] = (),
        draw: int = 0,
        passed: int = 0,
    ) -> None:
        super().__init__(description, faults, cpus)
        self.refusal = cache(self._refusal)
        between = (description.noise_buffers, description.noise_moments)
        self._course = RunPosition(description.seed, between, draw)
        self._trouble = Trouble(Schedule(faults), self._resources)
        self._stall = self._trouble.stall if faults else None
        self._sensors = SimTelemetry(self._hardware)
        self._passed = self._at = self._cells = passed
        """Cells passed up to and including the current one, and the most so far."""
        sizes = {host(node.index): int(node.group.memory) for node in self._hardware.nodes}
        for device in self._hardware.devices:
            sizes[Memory(self.name, device.index)] = int(device.group.memory)
        self._room = MemoryBudget(sizes)

    def devices(self) -> tuple[Device, ...]:
        return self._devices

    @cached_property
    def _devices(self) -> tuple[Device, ...]:
        return tuple(
            Device(
                memory=unit.name,
                model=unit.group.model,
                memory_bytes=int(unit.group.memory),
                largest_buffer=int(unit.group.memory),
                driver=unit.group.driver,
                near=self._topology.node_of(unit),
                pci=unit.pci,
                uuid=unit.uuid,
                node=unit.node,
                rail=unit.rail,
            )
            for unit in self._hardware.devices
        )

    def host(self) -> Host:
        return inventory.host(self._description, self._hardware.nodes)

    def look(self) -> Inventory:
        """Everything that can be read of the machine in its state after the cells so far."""
        symptoms = self._symptoms()
        virtual = self._description.host.hypervisor is not None
        functions = pci.functions(self._hardware, self._topology, symptoms, grouped=not virtual)
        grouped = bool(functions) and not virtual
        return Inventory(
            host=inventory.details(
                self._description, self._hardware.nodes, self._topology.joins, grouped=grouped
            ),
            pci=functions,
            accelerators=self._sensors.accelerators(symptoms),
            switch_links=switch_links(self._hardware),
            routing=self._hardware.routing,
            unknown=pci.unread(self._hardware),
        )

    def inventory(self) -> tuple[Accelerator, ...]:
        return self._sensors.accelerators(self._symptoms())

    def sense(self, devices: Sequence[Memory]) -> tuple[Telemetry, ...]:
        symptoms = Symptoms(self._hardware, self.faults, self._at) if self.faults else None
        return tuple(self._sensors.sense(device.index or 0, symptoms) for device in devices)

    def _symptoms(self) -> Symptoms:
        return Symptoms(self._hardware, self.faults, self._cells)

    def clock(self) -> float:
        return self._course.now

    def enter(
        self, cells: Mapping[int, Sequence[Transfer]], phase: Phase, visit: int = 0, taken: int = 0
    ) -> None:
        cells = {self._passed + number: of for number, of in cells.items()}
        first = min(cells)
        self._at = first + 1
        self._cells = max(self._cells, self._at)
        self._course.enter(first, phase, visit, taken)
        if self.faults:
            placed = {n: [self._on_nodes(t) for t in of] for n, of in cells.items()}
            self._trouble.enter(placed, phase)

    def _refusal(self, transfer: Transfer) -> str | None:
        reason = exchange_refusal(transfer, self._node_of) if transfer.source.is_cpu else None
        return reason or refusals.refusal(self._on_nodes(transfer), self._hardware, self._topology)

    def remarks(self, transfer: Transfer) -> tuple[str, ...]:
        return ()

    def reach(self, memory: Memory, engine: Engine) -> object:
        return memory

    def allocate(self, memory: Memory, size: int, engine: Engine) -> SimBuffer:
        return SimBuffer(memory, size, self._room)

    def fill(self, buffer: Buffer, size: int, pattern: Pattern, seed: int, inverted: bool) -> None:
        _own(buffer).fill(size, pattern, seed, inverted)

    def first_mismatch(self, buffer: Buffer, size: int, pattern: Pattern, seed: int) -> int | None:
        return _own(buffer).first_mismatch(size, pattern, seed)

    def checksum(self, buffer: Buffer, size: int) -> int:
        return _own(buffer).checksum(size)

    def prepare(self, copies: Sequence[Copy], operation: OperationName = "copy") -> Group:
        if isinstance(operation, Collective):
            return self._collecting(copies, operation)
        if operation not in _KNOWN:
            raise lacking(self.name, operation)
        check_exchanges(copies, operation)
        check_work(copies, operation)
        if operation in ARRAYS:
            check_own_arrays(self.name, copies, operation)
        demands = [self._demand(copy, copies, operation) for copy in copies]
        demands = self._trouble.begin(copies, demands)
        sigmas = self._sigmas(demands)
        if operation == "copy" or operation in ARRAYS:
            moving = self._moving(copies, demands)
            makes = RESULTS.get(ARRAYS[operation].kind) if operation in ARRAYS else None
            return SimGroup(copies, moving, sigmas, self._course, self._stall, makes=makes)
        if operation == "overlap":
            return self._beside_kernel(copies, demands, sigmas)
        check_alone(copies)
        if operation in ("copy-ping-pong", "timed-copy"):  # one way is as long as the other
            check_copy_engine(copies[0])
            moving = self._moving(copies, demands)
            pace = single_iterations(1)
            return SimGroup(copies, moving, sigmas, self._course, self._stall, pace)
        if operation in PRODUCTS:
            steps = operations_of(order_of(copies[0].size))
            seconds = 1 / demands[0].flow.cap
        else:
            seconds, steps = self._step(copies[0], operation)
        moving = (steady(seconds * steps),)
        if operation == "enqueue":  # work of the host, independent of the links
            sigmas = [self._description.noise]
        single = named(operation).is_single
        pace = single_iterations(steps) if single else Pace(loops=1, steps=steps)
        return SimGroup(copies, moving, sigmas, self._course, self._stall, pace)

    def _sigmas(self, demands: Sequence[Demand]) -> list[float]:
        """The relative noise of each copy."""
        return [
            math.hypot(self._description.noise, demand.jitter, self._trouble.sigma(place))
            for place, demand in enumerate(demands)
        ]

    def _collecting(self, copies: Sequence[Copy], work: Collective) -> CollectiveGroup:
        exchanging = Exchanging(copies, work, self._resources, self._topology)
        self._trouble.begin(copies, exchanging.ranks)
        seconds = exchanging.seconds(self._trouble.capacity(exchanging.demands))
        sigmas = self._sigmas(exchanging.ranks)
        flip = self._trouble.flip
        return CollectiveGroup(copies, work, seconds, sigmas, self._course, self._stall, flip)

    def _beside_kernel(
        self, copies: Sequence[Copy], demands: Sequence[Demand], sigmas: Sequence[float]
    ) -> OverlapGroup:
        """Copies without and with a kernel that takes as long as they do and crosses nothing."""
        first, others = check_overlap(copies)
        moving = self._moving(others, demands[1:])
        seconds = max(movement.end for movement in moving)
        kernel = replace(demands[0], flow=Flow((), first.size / seconds), startup=0.0)
        copying = SimGroup(others, moving, sigmas[1:], self._course)
        computing = SimGroup([first], [steady(seconds)], sigmas[:1], self._course)
        together = self._moving(copies, [kernel, *demands[1:]])
        both = SimGroup(copies, together, sigmas, self._course, self._stall)
        return OverlapGroup(copying, computing, both, ExitStack())

    def _moving(self, copies: Sequence[Copy], demands: Sequence[Demand]) -> tuple[Movement, ...]:
        bounded = any(not copy.endless for copy in copies)
        works = [
            Work(d.flow, copy.size, d.startup, d.queue, copy.endless and bounded)
            for d, copy in zip(demands, copies, strict=True)
        ]
        return movements(works, self._trouble.capacity(demands))

    def _step(self, copy: Copy, operation: OperationName) -> tuple[float, int]:
        """Seconds of one step of an operation other than a copy, and the steps in a loop."""
        transfer = self._on_nodes(copy.transfer)
        if operation == "chase":
            latency = self._resources.latency(transfer.source, transfer.engine.owner)
            return latency, max(1, copy.size // STRIDE)
        if operation == "flag-ping-pong":
            source, destination = check_flags(copy)
            owner = transfer.engine.owner
            latency = self._resources.latency(source if source != owner else destination, owner)
            # A device polls its flag in the host's memory: two accesses a round trip.
            return latency if source.is_host else latency / 2, 2
        if operation == "ping-pong":
            # Like an access to the other's memory that hits a cache: half of that memory's latency.
            latency = self._resources.latency(transfer.destination, transfer.source)
            own = self._hardware.nodes[transfer.destination.index or 0].group.latency
            return latency - own / 2, 2
        if transfer.engine.kind == "cpu":
            raise Unsupported("host threads enqueue nothing")
        return self._description.host.call, 1

    def _demand(self, copy: Copy, copies: Sequence[Copy], operation: OperationName) -> Demand:
        """Transfers that ask for no number of threads share their node's CPUs evenly."""
        transfer = self._on_nodes(copy.transfer)
        owner, threads = transfer.engine.owner, 0
        if operation in PRODUCTS:
            return self._resources.work(owner, operation)
        if transfer.engine.kind == "cpu":
            sharing = sum(copy.transfer.engine.owner == owner for copy in copies)
            cpus = len(self._hardware.nodes[owner.index or 0].cpus)
            threads = transfer.engine.count or max(1, cpus // sharing)
        demand = self._resources.demand(transfer, threads, self._description.host.thread)
        if operation not in ARRAYS:
            return demand
        own = {str(owner): float(named(operation).counted_arrays)}
        usage = tuple((name, own.get(str(name), part)) for name, part in demand.flow.usage)
        return replace(demand, flow=replace(demand.flow, usage=usage))

    def close(self) -> None:
        """Does nothing: only buffers hold resources, and their owners free them."""


def _own(buffer: Buffer) -> SimBuffer:
    if not isinstance(buffer, SimBuffer):
        raise BackendError("buffer", f"{buffer.memory} does not belong to this machine")
    return buffer

"""Backend `sim`: a described machine, on which transfers take virtual time.

Bytes really move, contention follows from the topology, and faults can be scheduled: what a run
does on hardware that fails can be tried without any. docs/simulation.md says what is computed and
what is not.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from linkgauge.backends.base import Buffer, Copy, Pattern, Phase
from linkgauge.model.errors import BackendError, Unsupported
from linkgauge.model.inventory import Accelerator, Inventory, Sense
from linkgauge.model.machine import Device, Host
from linkgauge.model.result import EngineSettings, Simulation
from linkgauge.model.transfer import Engine, Memory, Transfer, host

from . import inventory, pci, rules
from .description import Description, parse_description
from .faults import Fault, parse_fault
from .group import SimChase, SimGroup
from .hardware import build
from .memory import Room, SimBuffer
from .motion import Course, Work, movements, steady
from .resources import Demand, Resources
from .schedule import Schedule, check_targets
from .sensors import Sensors
from .symptoms import Symptoms
from .topology import Topology
from .trouble import Trouble

STRIDE = 128
"""Bytes from one pointer of a chase to the next, nvbandwidth's."""


def simulate(simulation: Simulation, engines: EngineSettings) -> SimBackend:
    """The machine of a simulation. `engines` shape real kernels: nothing here depends on them.

    Raises InputError for a description that is wrong, and for a fault that is.
    """
    description = parse_description(simulation.description)
    faults = [parse_fault(text) for text in (*description.faults, *simulation.faults)]
    return SimBackend(description, faults)


class SimBackend:
    """All of a simulated machine: its host's memories and threads, and its devices."""

    name = rules.SPACE

    def __init__(self, description: Description, faults: Sequence[Fault] = ()) -> None:
        self._description = description
        self._hardware = build(description)
        self._topology = Topology(self._hardware)
        self._resources = Resources(self._hardware, self._topology)
        self._refusals: dict[Transfer, str | None] = {}
        between = (description.noise_buffers, description.noise_moments)
        self._course = Course(description.seed, between)
        if faults:
            check_targets(faults, self._resources.targets)
        self._trouble = Trouble(Schedule(faults), self._resources)
        self._stall = self._trouble.stall if faults else None
        self._faults = tuple(faults)
        self._sensors = Sensors(self._hardware)
        self._at = self._cells = 0
        """Cells that have gone by at the one being measured, and at most."""
        sizes = {host(node.index): int(node.group.memory) for node in self._hardware.nodes}
        for device in self._hardware.devices:
            sizes[Memory(self.name, device.index)] = int(device.group.memory)
        self._room = Room(sizes)

    def devices(self) -> tuple[Device, ...]:
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
            )
            for unit in self._hardware.devices
        )

    def host(self) -> Host:
        return inventory.host(self._description, self._hardware.nodes)

    def look(self) -> Inventory:
        """All that there is to find of the machine as it is now: after the cells that went by."""
        symptoms = self._symptoms()
        virtual = self._description.host.hypervisor is not None
        functions = pci.functions(self._hardware, self._topology, symptoms, grouped=not virtual)
        grouped = bool(functions) and not virtual
        return Inventory(
            host=inventory.details(self._description, self._hardware.nodes, grouped),
            pci=functions,
            accelerators=self._sensors.accelerators(symptoms),
            unknown=pci.unread(self._hardware),
        )

    def inventory(self) -> tuple[Accelerator, ...]:
        return self._sensors.accelerators(self._symptoms())

    def sense(self, devices: Sequence[Memory]) -> tuple[Sense, ...]:
        symptoms = Symptoms(self._hardware, self._faults, self._at) if self._faults else None
        return tuple(self._sensors.sense(device.index or 0, symptoms) for device in devices)

    def _symptoms(self) -> Symptoms:
        return Symptoms(self._hardware, self._faults, self._cells)

    def clock(self) -> float:
        return self._course.now

    def enter(
        self,
        cells: Mapping[int, Sequence[Transfer]],
        phase: Phase,
        visit: int = 0,
        taken: int = 0,
    ) -> None:
        first = min(cells)
        self._at = first + 1
        self._cells = max(self._cells, self._at)
        self._course.enter(first, phase, visit, taken)
        self._trouble.enter(cells, phase)

    def refusal(self, transfer: Transfer) -> str | None:
        if transfer not in self._refusals:
            reason = rules.refusal(transfer, self._hardware, self._topology)
            self._refusals[transfer] = reason
        return self._refusals[transfer]

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

    def prepare(self, copies: Sequence[Copy]) -> SimGroup:
        demands = [self._demand(copy.transfer, copies) for copy in copies]
        demands = self._trouble.begin(copies, demands)
        bounded = any(not copy.endless for copy in copies)
        works = [
            Work(demand, copy.size, copy.endless and bounded)
            for demand, copy in zip(demands, copies, strict=True)
        ]
        moving = movements(works, self._trouble.capacity(demands))
        sigmas = [self._sigma(place, demand) for place, demand in enumerate(demands)]
        return SimGroup(copies, moving, sigmas, self._course, self._stall)

    def chase(self, copy: Copy) -> SimChase:
        """One thread of the copy's engine follows pointers through all of the source buffer."""
        owner = copy.transfer.engine.owner
        latency = self._resources.latency(copy.transfer.source, owner)
        demand = self._demand(copy.transfer, (copy,))
        self._trouble.begin((copy,), (demand,))
        sigma, accesses = self._sigma(0, demand), max(1, copy.size // STRIDE)
        return SimChase(copy, latency, accesses, sigma, self._course, self._stall)

    def enqueuing(self, copy: Copy) -> SimGroup:
        """The host's part of a copy by a device."""
        if copy.transfer.engine.kind == "cpu":
            raise Unsupported("host threads enqueue nothing")
        demand = self._demand(copy.transfer, (copy,))
        self._trouble.begin((copy,), (demand,))
        moving, sigmas = (steady(self._description.host.call),), (self._description.noise,)
        return SimGroup((copy,), moving, sigmas, self._course, self._stall)

    def _demand(self, transfer: Transfer, copies: Sequence[Copy]) -> Demand:
        """Threads that ask for no number share their node's CPUs evenly."""
        owner, threads = transfer.engine.owner, 0
        if transfer.engine.kind == "cpu":
            beside = sum(copy.transfer.engine.owner == owner for copy in copies)
            cpus = len(self._hardware.nodes[owner.index or 0].cpus)
            threads = transfer.engine.count or max(1, cpus // beside)
        return self._resources.demand(transfer, threads, self._description.host.thread)

    def _sigma(self, place: int, demand: Demand) -> float:
        """Relative standard deviation of the figures of the copy at this place of the group."""
        return math.hypot(self._description.noise, demand.jitter, self._trouble.sigma(place))

    def close(self) -> None:
        """Nothing is held but the buffers, which are freed by whoever holds them."""


def _own(buffer: Buffer) -> SimBuffer:
    if not isinstance(buffer, SimBuffer):
        raise BackendError("buffer", f"{buffer.memory} is not of this machine")
    return buffer

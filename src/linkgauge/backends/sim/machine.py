"""A simulated machine outside of measurements: its parts, links and faults."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

from linkgauge.model.errors import Unsupported
from linkgauge.model.memory import host
from linkgauge.model.operations.collective import Collective
from linkgauge.model.operations.operation import OperationName
from linkgauge.model.settings import Simulation
from linkgauge.model.transfer import Engine, Transfer

from .description import Description, load, parse_description
from .faults import Fault, Strike, check_targets, parse_fault
from .hardware import build, with_cpus
from .resources import Resources

if TYPE_CHECKING:
    from linkgauge.backends.protocol import Copy

    from .exchanging import Exchanging


def described(machine: str, faults: Sequence[str] = (), change: str | None = None) -> Simulation:
    """Reads a machine's description. `change` is as in changes.py. Raises InputError."""
    name, text = load(machine)
    if change is not None:
        from .changes import changed  # loaded for changes alone

        name, text = f"{name} with {change}", changed(text, change)
    simulation = Simulation(name, text, tuple(faults))
    machine_of(simulation)
    return simulation


@lru_cache(maxsize=1)
def machine_of(simulation: Simulation) -> SimMachine:
    """Raises InputError if the description or a fault is invalid, or a target is unknown."""
    parts = built(simulation.description, ())
    if faults := faults_of(simulation):
        typed = (*parts.hardware.description.faults, *simulation.faults)
        check_targets(zip(typed, faults, strict=True), parts.targets)
    return SimMachine(parts, faults)


@lru_cache(maxsize=1)
def built(text: str, cpus: tuple[int, ...]) -> Resources:
    """Builds a machine, and keeps the last one, because large clusters take seconds."""
    return parts_of(parse_description(text), cpus)


def parts_of(description: Description, cpus: Sequence[int] = ()) -> Resources:
    return Resources(with_cpus(build(description), cpus))


def faults_of(simulation: Simulation) -> list[Fault]:
    own = parse_description(simulation.description).faults
    return [parse_fault(one) for one in (*own, *simulation.faults)]


class SimMachine:
    def __init__(self, parts: Resources, faults: Sequence[Fault] = ()) -> None:
        self._resources = parts
        self._hardware, self._topology = parts.hardware, parts.topology
        self._description = parts.hardware.description
        self.faults = tuple(faults)
        self._node_of = {cpu: node.index for node in self._hardware.nodes for cpu in node.cpus}

    @property
    def strikes(self) -> tuple[Fault, ...]:
        """Returns the faults that end a cell. Some of them also end the measuring process."""
        return tuple(fault for fault in self.faults if isinstance(fault, Strike))

    def touched(self, transfer: Transfer) -> frozenset[str]:
        return self._resources.touched(self._on_nodes(transfer))

    def touched_by(self, transfers: Sequence[Transfer], operation: OperationName) -> frozenset[str]:
        """Returns the parts that a cell uses, with the links between a collective's ranks."""
        touched = frozenset[str]().union(*map(self.touched, transfers))
        if not isinstance(operation, Collective):
            return touched
        from linkgauge.backends.protocol import Copy  # what follows is loaded for collectives alone

        ranks = [Copy(transfer, None, None, transfer.scale, 1) for transfer in transfers]
        try:
            exchanging = self._exchanging(ranks, operation)
        except Unsupported:
            return touched
        return touched.union(*(demand.touched for demand in exchanging.demands))

    def _exchanging(self, ranks: Sequence[Copy], work: Collective) -> Exchanging:
        from .exchanging import Exchanging  # loaded for collectives alone

        return Exchanging(ranks, work, self._resources)

    def _on_nodes(self, transfer: Transfer) -> Transfer:
        """Replaces CPUs by their nodes, because a description has no single CPUs."""
        if not transfer.source.is_cpu:
            return transfer
        return _between(*(self._node_of[memory.index or 0] for memory in transfer.memories))


@lru_cache(maxsize=1 << 8)
def _between(node: int, other: int) -> Transfer:
    return Transfer(host(node), host(other), Engine(host(node), "cpu", 1))

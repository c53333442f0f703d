"""A simulated machine at rest: parts, links between the parts, and faults."""

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
from .faults import Fault, parse_fault
from .hardware import build, with_cpus
from .resources import Resources
from .schedule import check_targets
from .topology import SimTopology

if TYPE_CHECKING:
    from linkgauge.backends.protocol import Copy

    from .exchanging import Exchanging


def described(machine: str, faults: Sequence[str] = ()) -> Simulation:
    """Returns a checked simulation of a machine, given by name or file. Raises InputError for an
    invalid description or fault."""
    simulation = Simulation(*load(machine), tuple(faults))
    machine_of(simulation)
    return simulation


@lru_cache(maxsize=1)
def machine_of(simulation: Simulation) -> SimMachine:
    """Returns the machine of a run's simulation. The machine is built once and shared by the
    command line, the screen and the page. Raises InputError for an invalid description or fault."""
    return SimMachine(*read(simulation))


def read(simulation: Simulation) -> tuple[Description, list[Fault]]:
    """Parses the description and the faults of a simulation. Raises InputError."""
    description = parse_description(simulation.description)
    return description, [parse_fault(one) for one in (*description.faults, *simulation.faults)]


class SimMachine:
    """A described machine at rest. Only `cpus` are usable (none given: all). Raises InputError if
    the machine lacks the target of a fault."""

    def __init__(
        self, description: Description, faults: Sequence[Fault] = (), cpus: Sequence[int] = ()
    ) -> None:
        self._description = description
        self._hardware = with_cpus(build(description), cpus)
        self._topology = SimTopology(self._hardware)
        self._resources = Resources(self._hardware, self._topology)
        if faults:
            check_targets(faults, self._resources.targets)
        self.faults = tuple(faults)
        self._node_of = {cpu: node.index for node in self._hardware.nodes for cpu in node.cpus}

    def touched(self, transfer: Transfer) -> frozenset[str]:
        """Returns the names of fault targets that affect the transfer."""
        return self._resources.touched(self._on_nodes(transfer))

    def touched_by(self, transfers: Sequence[Transfer], operation: OperationName) -> frozenset[str]:
        """Returns the names of fault targets that affect a whole cell. A collective also uses the
        links between its ranks."""
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
        """Returns the exchanges of a collective. Raises Unsupported if no link joins two ranks."""
        from .exchanging import Exchanging  # loaded for collectives alone

        how = self._description.collectives
        return Exchanging(ranks, work, self._resources, self._topology, how)

    def _on_nodes(self, transfer: Transfer) -> Transfer:
        """Maps a transfer between CPUs to a transfer between the CPUs' nodes, because a description
        has no parts smaller than nodes."""
        if not transfer.source.is_cpu:
            return transfer
        first, second = (host(self._node_of[memory.index or 0]) for memory in transfer.memories)
        return Transfer(first, second, Engine(first, "cpu", 1))

"""How a rank measures one device of a simulated machine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from linkgauge.backends.protocol import Copy, Group
from linkgauge.backends.rank import OfProcess, OwnCopies
from linkgauge.backends.sim.backend import SimBackend, simulate
from linkgauge.machine.processes.launch import Launch
from linkgauge.model.errors import InputError, Phase, Unsupported
from linkgauge.model.hardware.inventory import Inventory
from linkgauge.model.memory import Memory
from linkgauge.model.operations.operation import OperationName
from linkgauge.model.settings import Settings
from linkgauge.model.transfer import Transfer


class SimRank(OfProcess):
    """Rank N, which measures device N. It simulates all ranks' copies, and reports its own."""

    backend: SimBackend

    def __init__(self, rank: int, settings: Settings) -> None:
        if settings.simulation is None:
            raise InputError("no machine to simulate")
        backend = simulate(settings.simulation, settings.engines)
        devices = backend.devices()
        if rank >= len(devices):
            name = settings.simulation.machine
            raise Unsupported(f"{name} has {len(devices)} devices: rank {rank} has none")
        super().__init__(rank, backend, devices[rank])

    def look(self) -> Inventory:
        return self.backend.look()

    def local(self, memory: Memory) -> Memory:
        return memory.unranked

    def prepare(self, copies: Sequence[Copy], operation: OperationName = "copy") -> Group:
        group = self.backend.prepare([self.copy(copy) for copy in copies], operation)
        return OwnCopies(group, self.places(copies))

    def enter(
        self,
        cells: Mapping[int, Sequence[Transfer]],
        phase: Phase,
        repetition: int = 0,
        taken: int = 0,
    ) -> None:
        own = {number: [*map(self.transfer, transfers)] for number, transfers in cells.items()}
        self.backend.enter(own, phase, repetition, taken)

    def clock(self) -> float:
        return self.backend.clock()


def create(launch: Launch, settings: Settings, hosts: Sequence[str], *, with_gpu: bool) -> SimRank:
    return SimRank(launch.rank, settings)

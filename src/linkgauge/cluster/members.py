"""Members by what they measure with: a simulated device, or a GPU. Those without have the memory of
their hosts, between which MPI (mpi.py) or network interfaces (net.py) move bytes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, cast

from linkgauge.backends import ACROSS_RANKS, SIMULATED, open_backend
from linkgauge.backends.protocol import Wrong
from linkgauge.backends.sim import SimBackend, simulate
from linkgauge.machine.host import read_host
from linkgauge.model.errors import InputError, Unsupported
from linkgauge.model.inventory import Inventory
from linkgauge.model.memory import NETWORK, Memory
from linkgauge.model.operation import OperationName
from linkgauge.model.settings import Settings

from .launch import Launch
from .member import BackendMember, Member
from .messages import Enter, Prepared, SharedCopy

if TYPE_CHECKING:
    from linkgauge.backends.torch import TorchBackend


def open_member(
    backend: str, launch: Launch, settings: Settings, *, with_gpu: bool = False
) -> Member:
    """The member of this rank; one with network interfaces has a GPU beside them `with_gpu`. Raises
    Unsupported or InputError, in one line, if it has no such device."""
    if backend == ACROSS_RANKS:
        from .mpi import open_mpi

        return open_mpi(launch)
    if backend == NETWORK:
        from .net import open_net

        return open_net(launch, settings, with_gpu=with_gpu)
    if backend == SIMULATED:
        return SimMember(launch.rank, settings)
    if backend == "cuda":
        from .cuda import open_cuda

        opened = open_backend(backend, settings.engines, read_host())
        return open_cuda(launch, opened)
    if backend == "torch":
        from .torch import open_torch

        found = open_backend(backend, settings.engines, read_host())
        return open_torch(launch, cast("TorchBackend", found))
    raise InputError(
        f"backend {backend} does nothing between processes: use cuda, torch, mpi or net"
    )


class SimMember(BackendMember):
    """Rank r has device r of the simulated machine. Every member simulates all of the machine, as
    all others do at the same time: its buffers are of all ranks, and it carries out all copies, but
    reports its own alone."""

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
        """All of the machine, in its state after the cells so far."""
        return self.backend.look()

    def local(self, memory: Memory) -> Memory:
        return memory.unranked

    def prepare(
        self, copies: Sequence[SharedCopy], operation: OperationName, tokens: Sequence[bytes] = ()
    ) -> Prepared:
        self.close_group()
        self._timed = tuple((n, n) for n, copy in enumerate(copies) if self.is_mine(copy))
        prepared = self.use(self.backend.prepare([self.copy(copy) for copy in copies], operation))
        return prepared if self._timed else Prepared()

    def check(self) -> Wrong:
        """All members find the same: it counts where it is."""
        found = super().check()
        return found if found.rank in dict(self._timed) else Wrong()

    def enter(self, command: Enter) -> None:
        cells = {
            number: [self.transfer(transfer) for transfer in transfers]
            for number, transfers in command.cells.items()
        }
        self.backend.enter(cells, command.phase, command.visit, command.taken)

    def clock(self) -> float:
        return self.backend.clock()

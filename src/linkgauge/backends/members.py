"""Members by what they measure with: a simulated device, or a GPU. Those without have the memory of
their hosts, between which MPI or network interfaces move bytes."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from linkgauge.backends import ACROSS_RANKS, SIMULATED, open_backend
from linkgauge.machine.host import read_host
from linkgauge.machine.launch import Launch
from linkgauge.model.errors import InputError
from linkgauge.model.memory import NETWORK
from linkgauge.model.settings import Settings

from .member import Member

if TYPE_CHECKING:
    from linkgauge.backends.torch import TorchBackend


def open_member(
    backend: str, launch: Launch, settings: Settings, *, with_gpu: bool = False
) -> Member:
    """The member of this rank; one with network interfaces has a GPU beside them `with_gpu`. Raises
    Unsupported or InputError, in one line, if it has no such device."""
    if backend == ACROSS_RANKS:
        from linkgauge.backends.mpi.member import open_mpi

        return open_mpi(launch)
    if backend == NETWORK:
        from linkgauge.backends.net.member import open_net

        return open_net(launch, settings, with_gpu=with_gpu)
    if backend == SIMULATED:
        from .sim.member import SimMember

        return SimMember(launch.rank, settings)
    if backend == "cuda":
        from linkgauge.backends.cuda.member import open_cuda

        opened = open_backend(backend, settings.engines, read_host())
        return open_cuda(launch, opened)
    if backend == "torch":
        from linkgauge.backends.torch.member import open_torch

        found = open_backend(backend, settings.engines, read_host())
        return open_torch(launch, cast("TorchBackend", found))
    raise InputError(
        f"backend {backend} does nothing between processes: use cuda, torch, mpi or net"
    )

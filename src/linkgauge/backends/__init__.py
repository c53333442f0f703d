"""Opens backends by name. The module of a backend is imported only when the backend is opened."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

from linkgauge.machine.tree import ROOT
from linkgauge.model.errors import InputError, Unsupported
from linkgauge.model.hardware.machine import Host
from linkgauge.model.memory import NETWORK
from linkgauge.model.names import hint
from linkgauge.model.settings import EngineSettings
from linkgauge.registry import loaded, named

if TYPE_CHECKING:
    from linkgauge.machine.processes.launch import Launch
    from linkgauge.model.settings import Settings

    from .protocol import Backend
    from .rank import RankBackend

ACCELERATORS = ("cuda", "opencl")
"""Backends with devices, in the order in which they are measured. `host` always exists."""
_OWN = ("host", "sim", "mpi", "net", *ACCELERATORS, "torch")
_OF_ROOMS = named("backends", _OWN)
ON_REQUEST = ("torch", *_OF_ROOMS)
"""The backends with devices that are measured only on request, because a backend made for the
device is better. If a machine has no better backend, a run uses these backends without a
request."""
KNOWN = (*ACCELERATORS, *ON_REQUEST)
"""All backends with devices."""
SHAPED = ("cuda",)
"""Backends that use the settings `kernel`, `blocks`, `threads` and `streams` of EngineSettings."""
GPUS = "cuda"
"""The backend with which several processes measure GPUs."""
ACROSS_RANKS = "mpi"
"""The backend for several processes without devices: MPI moves bytes between the memories of their
hosts."""
SIMULATED = "sim"
"""The backend of a simulated machine, including the machine's host."""
_RANKS_OF_ROOMS = named("ranks")
BY_RANKS = (GPUS, "torch", ACROSS_RANKS, SIMULATED, *_RANKS_OF_ROOMS)
"""Backends with which each of several processes is a rank."""


def open_backend(
    name: str,
    engines: EngineSettings = EngineSettings(),  # noqa: B008
    host: Host | None = None,
) -> Backend:
    """Returns a backend that is ready for use. Raises Unsupported with the reason if the machine
    cannot run the backend.

    The module of a backend has a function `create(engines, host) -> Backend`, which imports the
    vendor's libraries. `host` describes this machine; with None, the machine is read again.
    Environment variables that the machine's accelerators need are set before, unless they have a
    value."""
    from linkgauge.machine.environment import needed
    from linkgauge.machine.host import read_host  # in a worker: a controller only needs names

    if name in (ACROSS_RANKS, NETWORK):
        prefix = "multinode" if name == ACROSS_RANKS else "nic"
        several = f"mpiexec -n 2 linkgauge run --backend {name} --prefix {prefix}"
        raise Unsupported(f"it needs several processes: {several}")
    if name != "host" and name not in KNOWN:
        raise InputError(f"unknown backend {name!r}{hint(name, ('host', *KNOWN))}")
    if name in KNOWN:
        os.environ.update(needed(ROOT, os.environ))
    create = loaded(_OF_ROOMS.get(name, f"{__name__}.{name}:create"))
    backend: Backend = create(engines, host or read_host())
    return backend


def open_rank(
    name: str, launch: Launch, settings: Settings, hosts: Sequence[str], *, with_gpu: bool = False
) -> RankBackend:
    """Opens the backend with which this rank measures transfers between the ranks of `hosts`. With
    `with_gpu`, a rank that measures network interfaces also opens its GPU. The backend's module has
    a function `create` with the same arguments. Raises Unsupported or InputError, in one line, if
    the rank has no such device."""
    if name not in BY_RANKS:
        known = ", ".join(sorted(BY_RANKS))
        raise InputError(f"backend {name} does nothing between processes: choose one of {known}")
    create = loaded(_RANKS_OF_ROOMS.get(name, f"{__name__}.{name}.rank:create"))
    backend: RankBackend = create(launch, settings, hosts, with_gpu=with_gpu)
    return backend

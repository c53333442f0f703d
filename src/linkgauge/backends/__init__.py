"""How backends are opened by name. A backend's module is only imported when it is opened."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from importlib import import_module
from itertools import filterfalse
from operator import attrgetter
from typing import TYPE_CHECKING

from linkgauge.hooks import CORE, Hook, Unfit, expect
from linkgauge.machine.tree import ROOT
from linkgauge.model.errors import InputError, Unsupported
from linkgauge.model.hardware.machine import Device, Host
from linkgauge.model.memory import NETWORK
from linkgauge.model.names import hint
from linkgauge.model.notation import parse_memory
from linkgauge.model.settings import EngineSettings
from linkgauge.registry import hook_of, loaded, named

if TYPE_CHECKING:
    from linkgauge.machine.processes.launch import Launch
    from linkgauge.model.settings import Settings

    from .protocol import Backend, Glance
    from .rank import RankBackend

_OWN = ("host", "sim", "mpi", "net", "cuda", "opencl", "torch")
OF_ROOMS = named("backends", _OWN)
"""The `MODULE:NAME` of each backend of a plug-in."""
ACCELERATORS = ("cuda", *OF_ROOMS, "opencl")
"""Backends that are always tried, in this order: those of plug-ins, too. OpenCL comes last, because
it also shows devices that others know better. The backend `host` is always there."""
ON_REQUEST = ("torch",)
"""Backends that are used only on request, or if a machine has no better one."""
KNOWN = (*ACCELERATORS, *ON_REQUEST)
"""All backends with devices."""
SHAPED = ("cuda",)
"""Backends that use the settings `kernel`, `blocks`, `threads` and `streams` of EngineSettings."""
GPUS = "cuda"
"""The backend for GPUs of several processes."""
ACROSS_RANKS = "mpi"
"""The backend for several processes without devices. MPI moves bytes between their hosts."""
SIMULATED = "sim"
"""The backend of a simulated machine, including the machine's host."""
_RANKS_OF_ROOMS = named("ranks", _OWN)
BY_RANKS = (GPUS, "torch", ACROSS_RANKS, SIMULATED, *_RANKS_OF_ROOMS)
"""Backends that several processes can use together."""


def hook_of_backend(name: str) -> Hook:
    if name in OF_ROOMS:
        return hook_of("backends", name, _OWN)
    return hook_of("ranks", name, _OWN) if name in _RANKS_OF_ROOMS else CORE


def hook_of_backends(names: Iterable[str]) -> Hook:
    """Returns the hook of the first plug-in that offers one of these backends, else linkgauge's
    own. A hook guards calls of a plug-in's code against errors."""
    return next(filterfalse(attrgetter("is_ours"), map(hook_of_backend, names)), CORE)


def open_backend(
    name: str,
    engines: EngineSettings = EngineSettings(),  # noqa: B008
    host: Host | None = None,
) -> Backend:
    """Opens the backend `name`. Without `host`, this machine's host is read. Raises Unsupported if
    the backend cannot run here, and InputError for an unknown name."""
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
    with hook_of_backend(name).asked():
        create = loaded(OF_ROOMS.get(name, f"{__name__}.{name}:create"))
        backend: Backend = create(engines, host or read_host())
    return backend


def devices_of(name: str, source: Backend | Glance) -> tuple[Device, ...]:
    """Returns a backend's devices. Raises PluginFailed if a plug-in returns unusable devices."""
    hook = hook_of_backend(name)
    with hook.asked():
        found = source.devices()
        for device in () if hook.is_ours else found:
            expect(device, Device)
            if parse_memory(device.memory).backend != name:
                raise Unfit(f"{device.memory} is no memory of {name}")
        return tuple(found)


def glance(name: str, engines: EngineSettings, host: Host) -> Glance | None:
    """Returns a quick view of a backend's devices, or None if the backend must be opened."""
    with hook_of_backend(name).asked():
        place = OF_ROOMS.get(name, f"{__name__}.{name}:create")
        offered = getattr(import_module(place.partition(":")[0]), "glance", None)
        found: Glance | None = None if offered is None else offered(engines, host)
    return found


def open_rank(
    name: str, launch: Launch, settings: Settings, hosts: Sequence[str], *, with_gpu: bool = False
) -> RankBackend:
    """Opens the backend of one rank. `hosts` are all ranks' host names. If `with_gpu` is true, also
    opens a GPU to measure interfaces with. Raises InputError for a backend without ranks."""
    if name not in BY_RANKS:
        known = ", ".join(sorted(BY_RANKS))
        raise InputError(f"backend {name} does nothing between processes: choose one of {known}")
    with hook_of("ranks", name, _OWN).asked():
        create = loaded(_RANKS_OF_ROOMS.get(name, f"{__name__}.{name}.rank:create"))
        backend: RankBackend = create(launch, settings, hosts, with_gpu=with_gpu)
    return backend

"""The backends, by name. Each module is imported only when its backend is asked for."""

from __future__ import annotations

from importlib import import_module

from linkgauge.machine.host import read_host
from linkgauge.model.errors import InputError
from linkgauge.model.machine import Host
from linkgauge.model.result import EngineSettings

from .protocol import Backend

ACCELERATORS = ("cuda", "opencl")
"""Backends with devices, in the order in which they are measured. `host` is always there."""
SHAPED = ("cuda",)
"""Backends that know `kernel`, `blocks`, `threads` and `streams` of EngineSettings."""
SIMULATED = "sim"
"""The backend of a simulated machine, its host included."""


def open_backend(
    name: str,
    engines: EngineSettings = EngineSettings(),  # noqa: B008
    host: Host | None = None,
) -> Backend:
    """A ready backend. Raises Unsupported with the reason where the machine has none.

    A backend's module has `create(engines, host) -> Backend`; vendor libraries are imported there.
    `host` is this machine's, where it was read already.
    """
    if name != "host" and name not in ACCELERATORS:
        known = ", ".join(("host", *ACCELERATORS))
        raise InputError(f"unknown backend {name!r}: there are {known}")
    module = import_module(f"{__name__}.{name}")
    backend: Backend = module.create(engines, host or read_host())
    return backend

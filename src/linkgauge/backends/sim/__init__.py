"""Backend `sim`: a simulated machine, where transfers take virtual time.

Bytes really move, contention follows from the topology, and faults can be scheduled. So runs can be
tested without faulty hardware. docs/simulation.md lists what is simulated and what is not. The code
that measures is loaded at first use, because a controller only reads the parts of a machine."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .backend import SimBackend as SimBackend
    from .backend import simulate as simulate
    from .machine import described as described

_MODULES = {"SimBackend": "backend", "simulate": "backend", "described": "machine"}


def __getattr__(name: str) -> object:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)

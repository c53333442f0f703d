"""Backend `sim`: a simulated machine (docs/simulation.md). Bytes really move, in simulated time;
transfers share links, and faults can be scheduled. Measuring code is loaded at its first use."""

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

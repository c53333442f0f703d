"""Backend `sim`: a simulated machine, on which transfers take simulated time.

Bytes really move. Transfers slow each other down where they share links. Faults can be scheduled,
so that runs can be tested without faulty hardware. docs/simulation.md lists what is simulated and
what is not. The code that measures is loaded when first used, because some processes only read the
machine's description."""

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

"""The backends, by name. Each module is imported only when its backend is asked for."""

from __future__ import annotations

from importlib import import_module

from linkgauge.model.errors import InputError, Unsupported

from .base import Backend

ACCELERATORS = ("opencl",)
"""Backends with devices, in the order in which they are measured. `host` is always there."""


def open_backend(name: str) -> Backend:
    """A ready backend. Raises Unsupported with the reason where the machine has none.

    A backend's module has a function `create() -> Backend`; all it needs is imported there.
    """
    if name != "host" and name not in ACCELERATORS:
        known = ", ".join(("host", *ACCELERATORS))
        raise InputError(f"unknown backend {name!r}: there are {known}")
    module = import_module(f"{__name__}.{name}")
    backend: Backend = module.create()
    return backend


__all__ = ["ACCELERATORS", "Unsupported", "open_backend"]

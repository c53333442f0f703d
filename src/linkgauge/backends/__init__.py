"""The backends, by name. Each module is imported only when its backend is asked for."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module

from linkgauge.machine.host import read_host
from linkgauge.model.errors import InputError
from linkgauge.model.machine import Host
from linkgauge.model.result import EngineSettings

from .base import Backend

ACCELERATORS = ("cuda", "opencl")
"""Backends with devices, in the order in which they are measured. `host` is always there."""


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
    with _interrupted_afterwards():
        module = import_module(f"{__name__}.{name}")
        backend: Backend = module.create(engines, host or read_host())
    return backend


@contextmanager
def _interrupted_afterwards() -> Iterator[None]:
    """Ctrl-C counts once this is over: within an import it may be swallowed (by a weak reference's
    callback) or be fatal (in the initialiser of a C++ module)."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    came: list[int] = []
    before = signal.signal(signal.SIGINT, lambda number, _frame: came.append(number))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
    if came:
        raise KeyboardInterrupt

"""Who measures: a worker holds backends and is handed whole cells.

The controller speaks only to `Worker`; nothing crosses this seam while a clock runs, so a worker
may as well live in another process.
"""

from __future__ import annotations

import platform
from collections.abc import Callable, Sequence
from typing import Protocol

from linkgauge import __version__
from linkgauge.backends import open_backend
from linkgauge.backends.base import Backend, Tried, Tuner
from linkgauge.machine.host import read_host
from linkgauge.model.errors import LinkgaugeError, Unsupported
from linkgauge.model.machine import Device, Host, Machine
from linkgauge.model.notation import parse_cell, parse_memory
from linkgauge.model.result import CellResult, EngineSettings, PlannedCell, Settings
from linkgauge.model.transfer import Transfer

from .measure import Measurement, measure_together, unmeasured
from .pool import BufferPool

POOL_SHARE = 0.5
"""Share of the host's available memory that buffers may keep between cells."""


class Worker(Protocol):
    """Measures cells, whole ones: what it is given and what it gives back are plain values."""

    def survey(self, accelerators: Sequence[str]) -> Machine:
        """The host and the devices of these backends; why a backend has none."""
        ...

    def measure(
        self, cells: Sequence[PlannedCell], size: int, settings: Settings
    ) -> tuple[CellResult, ...]:
        """Measures these cells at the same time (one, unless they are of a round), and gives back
        theirs in their order. Never raises for what befalls them."""
        ...

    def tune(self, device: str, peer: str | None, tell: Callable[[Tried], None]) -> bool:
        """Searches how a device copies fastest and remembers it; `peer` is for peer paths. False
        where its backend has nothing to search."""
        ...

    def close(self) -> None: ...


class LocalWorker:
    """A worker in this process. `engines` is how its accelerators' engines are to work."""

    def __init__(self, engines: EngineSettings = EngineSettings()) -> None:  # noqa: B008
        self._engines = engines
        self._host: Host | None = None
        self._backends: dict[str, Backend] = {}
        self._pool = BufferPool()

    def survey(self, accelerators: Sequence[str]) -> Machine:
        host = self._host = read_host()
        if host.memory_available is not None:
            self._pool = BufferPool(int(host.memory_available * POOL_SHARE))
        # What is to be loaded is loaded before a run begins.
        self._backend("host")
        devices: dict[str, tuple[Device, ...]] = {}
        unavailable: dict[str, str] = {}
        for name in accelerators:
            try:
                devices[name] = self._backend(name).devices()
            except LinkgaugeError as reason:
                unavailable[name] = str(reason)
        return Machine(
            host=host,
            devices=devices,
            unavailable=unavailable,
            linkgauge=__version__,
            python=platform.python_version(),
        )

    def _backend(self, name: str) -> Backend:
        if name not in self._backends:
            self._backends[name] = open_backend(name, self._engines, self._host)
        return self._backends[name]

    def measure(
        self, cells: Sequence[PlannedCell], size: int, settings: Settings
    ) -> tuple[CellResult, ...]:
        results: dict[PlannedCell, CellResult] = {}
        able: list[Measurement] = []
        for cell in cells:
            transfers = parse_cell(cell.transfers)
            try:
                backends = [self._backend(name) for name in backends_of(transfers)]
                refusals = (b.refusal(t) for b, t in zip(backends, transfers, strict=True))
                reason = cell.reason or next(filter(None, refusals), None)
            except Unsupported as error:
                reason = cell.reason or str(error)
            except LinkgaugeError as error:  # a driver that fails at its first question
                results[cell] = unmeasured(cell, "error", str(error))
                continue
            if reason is not None:
                results[cell] = unmeasured(cell, "skip", reason)
            else:
                able.append(Measurement(cell, transfers, size, settings, backends))
        if able:
            together = measure_together(able, settings, self._pool)
            results.update(zip((cell.planned for cell in able), together, strict=True))
        return tuple(results[cell] for cell in cells)

    def tune(self, device: str, peer: str | None, tell: Callable[[Tried], None]) -> bool:
        place = parse_memory(device)
        backend = self._backend(place.backend)
        if not isinstance(backend, Tuner):
            return False
        other = None if peer is None else parse_memory(peer).index
        backend.tune(place.index or 0, other, tell)
        return True

    def close(self) -> None:
        self._pool.free_idle()
        for backend in self._backends.values():
            backend.close()
        self._backends.clear()


def backends_of(transfers: Sequence[Transfer]) -> list[str]:
    """The backend of each transfer: its engine's. Host threads may work beside one accelerator's
    engines; raises Unsupported for two accelerators, whose APIs know nothing of each other."""
    names = [transfer.engine.owner.backend for transfer in transfers]
    accelerators = sorted(set(names) - {"host"})
    if len(accelerators) > 1:
        raise Unsupported(f"transfers of {' and '.join(accelerators)} do not run in one cell")
    return names

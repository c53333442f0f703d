"""A worker opens backends and measures cells with them. A `Supervisor` runs it in a process."""

from __future__ import annotations

import platform
from collections.abc import Callable, Sequence
from functools import cached_property
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

import linkgauge
from linkgauge import __version__
from linkgauge.backends import devices_of, glance, hook_of_backend, hook_of_backends, open_backend
from linkgauge.backends.protocol import Backend, Glance, Readies, Tuner, follows
from linkgauge.engine.measuring.equivalent import EquivalentCells
from linkgauge.engine.measuring.measure import Known, OnPhase, measure_together
from linkgauge.engine.measuring.measurement import Measurement
from linkgauge.engine.measuring.pool import BufferPool
from linkgauge.machine.source import commit
from linkgauge.model.documents.result import CellResult, PlannedCell
from linkgauge.model.errors import LinkgaugeError, Unsupported
from linkgauge.model.hardware.gaps import Gap
from linkgauge.model.hardware.inventory import Accelerator, Inventory
from linkgauge.model.hardware.machine import Device, Host, Machine
from linkgauge.model.hardware.network import rises
from linkgauge.model.notation import parse_memory
from linkgauge.model.settings import EngineSettings, Profiler, Settings, Tried

from .outcomes import FIRST, Repetition, measure_able
from .ranges import profiled_by

if TYPE_CHECKING:
    from linkgauge.backends.sim.backend import SimBackend
    from linkgauge.engine.measuring.background_load import BackgroundLoad

POOL_SHARE = 0.5
"""The share of the host's available memory that buffers may keep between cells."""


class LocalWorker:
    """Measures in this process. Calls `on_phase` when a phase begins, and after samples."""

    def __init__(
        self,
        settings: Settings = Settings(sizes=()),  # noqa: B008
        on_phase: OnPhase = lambda phase: None,
    ) -> None:
        self._settings = settings
        self._on_phase = on_phase
        self._backends: dict[str, Backend] = {}
        self._glances: dict[str, Glance] = {}
        self._known: dict[tuple[tuple[int, ...], int], Known] = {}
        """The facts that a cell's first repetition determined, by the cell's numbers and size."""
        self._only: Backend | None = None
        self.leads = True
        """Whether this worker's results count. If several workers measure the same cells, the
        results of one count."""
        self._neighbours: BackgroundLoad | None = None
        if settings.simulation is None:  # what reads this machine is not loaded for a simulated one
            from linkgauge.engine.measuring.background_load import BackgroundLoad

            self._neighbours = BackgroundLoad()

    def survey(self, accelerators: Sequence[str], *, brief: bool = False) -> Machine:
        """Returns the host and the backends' devices. Backends without devices are listed with the
        reason. With `brief`, opens only backends whose devices cannot be known otherwise."""
        if not brief:
            self._backend("host")  # load everything needed before a run begins
        devices: dict[str, tuple[Device, ...]] = {}
        unavailable: dict[str, str] = {}
        for name in accelerators:
            try:
                known = glance(name, self._engines, self.host) if brief else None
                if known is not None:
                    self._glances[name] = known
                devices[name] = devices_of(name, self._source(name))
            except LinkgaugeError as reason:
                unavailable[name] = str(reason)
        return Machine(
            host=self.host,
            devices=devices,
            unavailable=unavailable,
            linkgauge=__version__,
            commit=commit(Path(linkgauge.__file__)),
            python=platform.python_version(),
            simulated=self._settings.simulation.machine if self._settings.simulation else None,
            inventory=self.look(tuple(devices)),
        )

    def look(self, accelerators: Sequence[str]) -> Inventory:
        """Reads the details of the host and of accelerators, and why some are unreadable."""
        if self._simulated is not None:
            return self._simulated.look()
        from linkgauge.machine.read_inventory import read_inventory

        here = read_inventory()
        found: list[Accelerator] = []
        unknown: list[Gap] = []
        for name in accelerators:
            try:
                backend = self._source(name)
                if isinstance(backend, Glance):
                    with hook_of_backend(name).asked():
                        found += backend.inventory()
            except LinkgaugeError as reason:
                unknown.append(Gap(str(reason), f"accelerators of {name}"))
        return msgspec.structs.replace(
            here, accelerators=tuple(found), unknown=(*here.unknown, *unknown)
        )

    def _source(self, name: str) -> Backend | Glance:
        return self._glances.get(name) or self._backend(name)

    def measure_with(self, backend: Backend, pool: BufferPool | None = None) -> None:
        """Makes one backend carry out all further transfers, with this pool of buffers if given."""
        self._only = backend
        if pool is not None:
            self._pool = pool

    def forget(self, cells: Sequence[PlannedCell], size: int) -> None:
        """Discards facts from earlier repetitions of these cells."""
        self._known.pop((tuple(cell.number for cell in cells), size), None)

    def _backend(self, name: str) -> Backend:
        if self._only is not None:
            return self._only
        if name not in self._backends:
            self._backends[name] = self._simulated or open_backend(name, self._engines, self.host)
        return self._backends[name]

    @property
    def _engines(self) -> EngineSettings:
        """The engines' settings. Profilers turn tuning off; calls may wait under all but nsys."""
        engines, profiler = self._settings.engines, profiled_by(self._settings)
        if profiler is None:
            return engines
        return msgspec.structs.replace(engines, tunes=False, calls_wait=profiler != "nsys")

    @cached_property
    def host(self) -> Host:
        if self._simulated is not None:
            return self._simulated.host()
        from linkgauge.machine.host import read_host

        return read_host()

    @cached_property
    def _pool(self) -> BufferPool:
        available = self.host.memory_available
        return BufferPool(None if available is None else int(available * POOL_SHARE))

    @cached_property
    def _simulated(self) -> SimBackend | None:
        if self._settings.simulation is None:
            return None
        from linkgauge.backends.sim.backend import simulate

        cpus = self._settings.surroundings.cpus
        return simulate(self._settings.simulation, self._settings.engines, cpus)

    @cached_property
    def _equivalent(self) -> EquivalentCells | None:
        """Returns the results that equivalent cells share; None if each cell is to be measured."""
        if self._simulated is None or self._only is not None:
            return None
        return EquivalentCells(self._simulated)

    def measure(
        self, cells: Sequence[PlannedCell], size: int, repetition: Repetition = FIRST
    ) -> tuple[CellResult, ...]:
        """Measures these cells in one repetition, all at the same time. Returns their results in
        order. Errors of a cell are not raised, but become its result."""
        if self._equivalent is None:
            return self._measure(cells, size, repetition)
        return self._equivalent.measure(cells, size, repetition, self._measure)

    def _measure(
        self, cells: Sequence[PlannedCell], size: int, repetition: Repetition
    ) -> tuple[CellResult, ...]:
        made: list[Measurement] = []

        def make(cell: PlannedCell) -> None:
            names = list(map(attrgetter("engine.owner.backend"), cell.transfers))
            # A backend refuses, or a driver fails at its first call.
            with hook_of_backends(names).asked(prints=True):
                backends = self._backends_for(cell, names)
                made.append(Measurement(cell, size, self._settings, backends))

        def measure(able: Sequence[PlannedCell]) -> tuple[CellResult, ...]:
            key = tuple(map(attrgetter("number"), able)), size
            neighbours = self._neighbours if self.leads else None
            if neighbours is not None:
                neighbours.begin()
            before = self._simulated.network_counters() if self._simulated is not None else ()
            measured, found = measure_together(
                made,
                self._settings,
                self._pool,
                self._on_phase,
                repetition,
                self._known.get(key),
            )
            if found is not None:
                self._known[key] = found
            if before and self._simulated is not None:
                seconds = measured[0].seconds or 0.0
                rose = rises(before, self._simulated.network_counters(), seconds)
                measured = tuple(msgspec.structs.replace(one, rises=rose) for one in measured)
            if neighbours is not None:
                engines = (transfer.engine for cell in measured for transfer in cell.transfers)
                load = neighbours.end(any(engine.owner.is_host for engine in engines))
                measured = tuple(msgspec.structs.replace(one, load=load) for one in measured)
            return measured

        return measure_able(cells, make, measure)

    def _backends_for(self, cell: PlannedCell, names: Sequence[str]) -> list[Backend]:
        accelerators = sorted(set(names) - {"host"})
        if len(accelerators) > 1:  # their APIs are unaware of each other
            raise Unsupported(f"transfers of {' and '.join(accelerators)} do not run in one cell")
        backends = list(map(self._backend, names))
        for backend, transfer in zip(backends, cell.transfers, strict=True):
            refusal = backend.refusal(transfer)
            if refusal is not None:
                raise refusal if isinstance(refusal, Unsupported) else Unsupported(refusal)
        for backend in backends:
            if follows(backend, Readies):  # type: ignore[type-abstract]
                backend.ready(cell.does, len(cell.transfers))
        return backends

    def tune(self, device: str, peer: str | None, on_trial: Callable[[Tried], None]) -> bool:
        """Searches for a device's fastest settings and stores them. `peer` is a second device, for
        the paths between devices. Returns False if the backend cannot search."""
        place = parse_memory(device)
        backend = self._backend(place.backend)
        if not isinstance(backend, Tuner):
            return False
        other = None if peer is None else parse_memory(peer).index
        with hook_of_backend(place.backend).asked(prints=True):
            backend.tune(place.index or 0, other, on_trial)
        return True

    def find_buffer(self, node: int, least: int, most: int) -> int:
        """Returns a buffer size beyond the caches of this node's CPUs. All sizes are in bytes."""
        from linkgauge.backends.host_kernels import remembered_file
        from linkgauge.backends.host_plateau import beyond_caches, remembered

        at = next(one for one in self.host.nodes if one.index == node)
        if not self._engines.host_tuned:
            return beyond_caches(at, least, most)
        return remembered(at, least, most, remembered_file(len(at.cpus), what="buffer"))

    def release(self) -> None:
        hook_of_backends(self._backends).tried(self._pool.free_idle, None)

    def keep_output(self, folder: Path) -> None:
        """Does nothing, because this worker prints where its process prints."""

    def profile(self, profiler: Profiler, folder: Path) -> None:
        """Does nothing, because a profiler starts the processes that it measures."""

    def end_profile(self, say: Callable[[str], None]) -> tuple[str, ...]:
        return ()

    def end(self) -> None:
        self.close()

    def close(self) -> None:
        self.release()
        for name, backend in self._backends.items():
            hook_of_backend(name).tried(backend.close, None)
        self._backends.clear()
        self._known.clear()
        self.__dict__.pop("_simulated", None)
        self.__dict__.pop("_equivalent", None)

"""Worker processes: a `supervisor` starts a `process` for each backend, which runs a `worker`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from linkgauge.model.settings import Settings

if TYPE_CHECKING:
    from .messages import Workers
    from .process import WorkerProcess


def workers_of(
    settings: Settings, first: WorkerProcess | None = None, brief: float | None = None
) -> Workers:
    """Returns a `LocalWorker` for a simulated machine without a profiler and without a fault that
    may end or hang the process, otherwise a `Supervisor`."""
    if settings.simulation is not None and settings.profiler is None:
        from linkgauge.backends.sim.faults import Strike
        from linkgauge.backends.sim.machine import machine_of

        if not any(isinstance(one, Strike) for one in machine_of(settings.simulation).faults):
            from .worker import LocalWorker

            return LocalWorker(settings)
    from .supervisor import Supervisor

    return Supervisor(settings, first, brief)

"""The load that other programs put on a machine while a cell is measured."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from statistics import fmean

import msgspec

from linkgauge.model.shareable import ProcessName

AT_WORK = 0.05
"""A device that works for more than this share of the time is in use."""


class Load(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """The load of other processes during a time. Files leave out 0, null and empty values.

    seconds: Length of the time in seconds.
    others: CPU time in seconds, on all CPUs together, that processes outside the run used.
    stolen: CPU time in seconds, on all CPUs together, that a hypervisor took.
    process: The name of the busiest other process; null if no other process is visible.
    pid: The id of the busiest other process; null if there is none.
    cpu_distances: Mean seconds for a cache line from a VM's first CPU to each of several others."""

    seconds: float
    others: float = 0.0
    stolen: float = 0.0
    process: ProcessName | None = None
    pid: int | None = None
    cpu_distances: tuple[float, ...] = ()

    @property
    def cpus(self) -> float:
        """The mean number of CPUs that other processes and the hypervisor kept busy."""
        return (self.others + self.stolen) / self.seconds if self.seconds > 0 else 0.0


def joined(loads: Iterable[Load | None]) -> Load | None:
    """Returns the loads as one; None if one is unknown. `process` is the busiest over all loads."""
    known = list(loads)
    if not known:
        return None
    busy: defaultdict[tuple[str | None, int | None], float] = defaultdict(float)
    seconds = others = stolen = 0.0
    for load in known:
        if load is None:
            return None
        seconds, others, stolen = (
            seconds + load.seconds, others + load.others, stolen + load.stolen
        )  # fmt: skip
        if load.process is not None:
            busy[load.process, load.pid] += load.others
    process, pid = max(busy, key=lambda one: busy[one], default=(None, None))
    return Load(seconds, others, stolen, process, pid, _mean_distances(known))


def _mean_distances(loads: Sequence[Load | None]) -> tuple[float, ...]:
    known = [load.cpu_distances for load in loads if load is not None and load.cpu_distances]
    return tuple(map(fmean, zip(*known, strict=True))) if known else ()

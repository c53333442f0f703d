"""What else a machine did while a cell was measured."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from statistics import fmean

import msgspec


class Load(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """What else a machine did in a span of time. In files, what is 0, null or empty is left out.

    seconds: Length of the span in seconds.
    others: CPU time in seconds, of all CPUs together, that others than the run took.
    stolen: CPU time in seconds, of all CPUs together, that a hypervisor took.
    process: The busiest of the others; null if none that this process can see.
    pid: Its process id; null if there is none.
    apart: How far a virtual machine's CPUs were from each other: seconds that a cache line takes
        between the first one and each of some others, on average.
    """

    seconds: float
    others: float = 0.0
    stolen: float = 0.0
    process: str | None = None
    pid: int | None = None
    apart: tuple[float, ...] = ()

    @property
    def cpus(self) -> float:
        """How many CPUs others, and the hypervisor, kept busy."""
        return (self.others + self.stolen) / self.seconds if self.seconds > 0 else 0.0


def joined(loads: Iterable[Load | None]) -> Load | None:
    """The load of several spans; the process is the one that was the busiest for longest. None
    if that of any is unknown."""
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
    return Load(seconds, others, stolen, process, pid, _mean_apart(known))


def _mean_apart(loads: Sequence[Load | None]) -> tuple[float, ...]:
    """Over the loads that know it."""
    known = [load.apart for load in loads if load is not None and load.apart]
    return tuple(map(fmean, zip(*known, strict=True))) if known else ()

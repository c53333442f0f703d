"""What else a machine did while a cell was measured."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

import msgspec


class Load(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """CPU time in seconds, of all CPUs together, that others than the run took in a span of
    `seconds`, and that a hypervisor took (`stolen`). The busiest of the others is `process`, with
    its `pid` (null: none that this process can see). In files, what is 0 or null is left out."""

    seconds: float
    others: float = 0.0
    stolen: float = 0.0
    process: str | None = None
    pid: int | None = None

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
    return Load(seconds, others, stolen, process, pid)

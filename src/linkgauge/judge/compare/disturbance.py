"""Decides which runs of a cell can be compared. Another program can slow a cell as much as a broken
link, so the machine must be about as busy as it usually is in the baseline. If a figure depends on
CPUs, the time that a cache line takes between CPUs must also be as usual, because it changes when a
host moves a guest's CPUs (model/hardware/host_use.py)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import median_low

import msgspec
from msgspec.structs import replace

from linkgauge.model.counters import Load
from linkgauge.model.grouped import grouped

from .likeness import CellFigure, RunFigures, Runs
from .side_tests import key_of

DIFFERENT = 0.2
"""The number of CPUs by which the load of other processes may differ. An idle machine's own
services take less than a tenth of a CPU."""

MEMORY = 0.25
"""The share of the CPUs that must copy all the time to take a noticeable part of the bandwidth of
the host's memory."""

MOVED = 1.5
"""The factor by which distances between virtual CPUs may differ. On an EPYC they are 25 to 31 ns
apart within a core complex, and 119 to 128 ns between two."""


class Disturbance(msgspec.Struct, frozen=True):
    """A difference in a machine's load between the baseline and the current runs.

    baseline: How many CPUs other processes kept busy in the baseline's runs.
    current: How many CPUs other processes kept busy in the current runs.
    process: The process that was the busiest; null if none is known.
    pid: Its process id; null if none is known.
    device: The device that other processes used on one side only; null if none.
    cpu_distances: The seconds that a cache line takes from the first virtual CPU to another one, in
      the baseline and in the current runs; null if they do not differ."""

    baseline: float
    current: float
    process: str | None = None
    pid: int | None = None
    device: str | None = None
    cpu_distances: tuple[float, float] | None = None


class _Seen(msgspec.Struct, frozen=True):
    """A cell of one run. `load` is None if the figure does not depend on the host. `tolerated` is
    the number of busy CPUs by which two runs may differ without an effect on the figure."""

    cell: CellFigure
    load: Load | None
    tolerated: float
    shared: dict[str, tuple[int, ...]]
    cpu_distances: tuple[float, ...]

    @property
    def cpus(self) -> float:
        return 0.0 if self.load is None else self.load.cpus


def undisturbed(baseline: Runs, current: Runs) -> tuple[Runs, Runs, dict[object, Disturbance]]:
    """Returns both sides without cells whose load differs from the cell's usual load in the
    baseline. A cell that differs in all current runs stays; the dict then has the difference."""
    before, after = (grouped((key_of(one.cell), one) for one in _seen(runs))
                     for runs in (baseline, current))  # fmt: skip
    left_out: set[int] = set()
    found: dict[object, Disturbance] = {}
    for key, own in before.items():
        usual, others = _usual(own), after.get(key, [])
        now = [why for one in others if (why := _difference(one, usual)) is not None]
        if now and len(now) == len(others):
            found[key] = max(now, key=lambda why: abs(why.current - why.baseline))
            others = []
        left_out |= {id(one.cell) for one in (*own, *others) if _difference(one, usual)}

    def kept(runs: Runs) -> list[RunFigures]:
        return [
            replace(run, cells=tuple(one for one in run.cells if id(one) not in left_out))
            for run in runs
        ]

    return kept(baseline), kept(current), found


def _seen(runs: Runs) -> Iterator[_Seen]:
    for run in runs:
        memory = MEMORY * run.machine.host.cpus
        for cell in run.cells:
            yield _Seen(
                cell,
                None if cell.host == "none" else cell.load,
                max(DIFFERENT, memory) if cell.host == "memory" else DIFFERENT,
                {device: run.busy[device] for device in cell.devices if device in run.busy},
                cell.load.cpu_distances if cell.load is not None and cell.host == "cpus" else (),
            )


def _usual(cells: Sequence[_Seen]) -> _Seen:
    known = [one for one in cells if one.load is not None] or cells
    middle = median_low([one.cpus for one in known])
    seen = next(one for one in known if one.cpus == middle)
    distances = [one.cpu_distances for one in cells if one.cpu_distances]
    return replace(seen, cpu_distances=tuple(map(median_low, zip(*distances, strict=False))))


def _difference(one: _Seen, usual: _Seen) -> Disturbance | None:
    """Returns how the load differs from the usual one, or None. Unknown values count as usual."""
    device = next(iter(usual.shared.keys() ^ one.shared.keys()), None)
    if device is not None:
        pid = next(iter((usual.shared | one.shared)[device]), None)
        return Disturbance(usual.cpus, one.cpus, pid=pid, device=device)
    if one.load is not None and usual.load is not None:
        busier = max(one.load, usual.load, key=lambda load: load.cpus)
        if abs(one.cpus - usual.cpus) > one.tolerated:
            return Disturbance(usual.cpus, one.cpus, busier.process, busier.pid)
    pairs = list(zip(usual.cpu_distances, one.cpu_distances, strict=False))
    ends = max(pairs, key=lambda pair: max(pair) / min(pair), default=(1.0, 1.0))
    if max(ends) > MOVED * min(ends):
        return Disturbance(usual.cpus, one.cpus, cpu_distances=ends)
    return None

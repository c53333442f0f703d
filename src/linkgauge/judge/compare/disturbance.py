"""Decides which runs of a cell can be compared, because other programs slow a cell as a broken link
does. The machine must be about as busy as usual in the baseline. For a figure that depends on CPUs,
the time of a cache line between them must also be as usual, because a host may move a guest's CPUs
(model/hardware/host_use.py)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import median_low

import msgspec
from msgspec.structs import replace

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
    cell: CellFigure
    machine_cpus: int
    shared: tuple[str, ...]
    pid: int | None
    cpu_distances: tuple[float, ...]

    @property
    def cpus(self) -> float | None:
        load = self.cell.load
        return None if load is None or self.cell.host == "none" else load.cpus

    @property
    def tolerated(self) -> float:
        """Returns by how many busy CPUs two runs may differ without an effect on the figure."""
        memory = MEMORY * self.machine_cpus if self.cell.host == "memory" else 0.0
        return max(DIFFERENT, memory)


def undisturbed(baseline: Runs, current: Runs) -> tuple[Runs, Runs, dict[object, Disturbance]]:
    """Removes a cell from runs whose load differs from the baseline's usual load. If the load of
    all current runs differs, the cell stays, and its disturbance is returned."""
    before, after = (grouped((key_of(one.cell), one) for one in _seen(runs))
                     for runs in (baseline, current))  # fmt: skip
    left_out: set[int] = set()
    found: dict[object, Disturbance] = {}
    for key, own in before.items():
        usual, others = _usual(own), after.get(key, ())
        separate = [one for one in others if not _is_like(one, usual)]
        if separate and len(separate) == len(others):
            found[key] = _disturbance(usual, separate)
            separate = []
        left_out |= {id(one.cell) for one in (*own, *separate) if not _is_like(one, usual)}

    def kept(runs: Runs) -> list[RunFigures]:
        return [
            replace(run, cells=tuple(one for one in run.cells if id(one) not in left_out))
            for run in runs
        ]

    return kept(baseline), kept(current), found


def _seen(runs: Runs) -> Iterator[_Seen]:
    for run in runs:
        for cell in run.cells:
            shared = tuple(device for device in cell.devices if device in run.busy)
            pids = [pid for device in shared for pid in run.busy[device]]
            distances = (
                cell.load.cpu_distances if cell.load is not None and cell.host == "cpus" else ()
            )
            yield _Seen(cell, run.machine.host.cpus, shared, next(iter(pids), None), distances)


def _usual(cells: Sequence[_Seen]) -> _Seen:
    known = [one for one in cells if one.cpus is not None] or list(cells)
    middle = median_low([one.cpus or 0.0 for one in known])
    seen = next(one for one in known if (one.cpus or 0.0) == middle)
    distances = [one.cpu_distances for one in cells if one.cpu_distances]
    return replace(seen, cpu_distances=tuple(map(median_low, zip(*distances, strict=False))))


def _is_like(one: _Seen, usual: _Seen) -> bool:
    """Whether a run's load is as usual. Unknown values count as usual."""
    return _is_loaded_like(one, usual) and _moved(one, usual) is None


def _is_loaded_like(one: _Seen, usual: _Seen) -> bool:
    if one.shared != usual.shared:
        return False
    if one.cpus is None or usual.cpus is None:
        return True
    return abs(one.cpus - usual.cpus) <= one.tolerated


def _moved(one: _Seen, usual: _Seen) -> tuple[float, float] | None:
    pairs = list(zip(usual.cpu_distances, one.cpu_distances, strict=False))
    before, after = max(pairs, key=lambda pair: max(pair) / min(pair), default=(1.0, 1.0))
    return (before, after) if max(before, after) > MOVED * min(before, after) else None


def _disturbance(usual: _Seen, others: Sequence[_Seen]) -> Disturbance:
    other = max(others, key=lambda one: abs((one.cpus or 0.0) - (usual.cpus or 0.0)))
    if all(_is_loaded_like(one, usual) for one in others):
        return Disturbance(
            usual.cpus or 0.0, other.cpus or 0.0, cpu_distances=_moved(others[0], usual)
        )
    before, after = usual.cpus or 0.0, other.cpus or 0.0
    device = next(iter({*usual.shared} ^ {*other.shared}), None)
    if device is not None:
        return Disturbance(before, after, pid=other.pid or usual.pid, device=device)
    busier = (other if after > before else usual).cell.load
    if busier is None:
        return Disturbance(before, after)
    return Disturbance(before, after, busier.process, busier.pid)

"""Reduces runs to the figures and facts that comparisons need. Two runs are comparable if they
measured machines of the same kind in the same way. Drivers and kernels may differ."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from typing import Any

import msgspec
from msgspec.structs import replace

from linkgauge.judge.neighbours import at_work
from linkgauge.model.by_name import by_name
from linkgauge.model.cell_id import bytes_of
from linkgauge.model.counters import Load
from linkgauge.model.documents.history import Figure, figures_by_result
from linkgauge.model.documents.result import CellResult, Run
from linkgauge.model.errors import NOT_TRIED
from linkgauge.model.hardware.host_use import HostUse, host_use
from linkgauge.model.hardware.machine import Machine
from linkgauge.model.recorded import RECORDED, PathKind, path_kind
from linkgauge.model.settings import Settings
from linkgauge.model.stats.changes import within
from linkgauge.model.stats.intervals import COVERAGE
from linkgauge.model.stats.moments import Spread
from linkgauge.model.stats.summary import summarize
from linkgauge.model.units import format_size

from .machine_state import ABSENT, Fact, counted, differing, differing_options, facts_of, joined

# What a comparison of runs reads of each run: a figure for each cell, and what it was measured on.
#
# A baseline file keeps these alone, so that runs of weeks fit into one.

_LEAST_COVERAGE = 0.5
_FEW = 6
"""The degrees of freedom of a variance that does not report them."""
_NEAR = 8
"""The factor by which default sizes of a table may differ. Of a machine with two CPUs, they do."""


class CellFigure(Figure, frozen=True, kw_only=True, omit_defaults=True):
    """A cell's figure in one run. `figure` is the median, null if it is not positive. The interval
    from `low` to `high` holds another run's figure with the probability `coverage`; if `coverage`
    is null, the interval says nothing about other runs. `host` is the part of the host on which the
    figure depends. `path` is missing in older files and the history, `bytes` in older files and for
    work without memory. `tried` is false if the run ended before the cell's turn."""

    bytes: int | None = None
    coverage: float | None = None
    degrees: int | None = None
    reason: str | None = None
    load: Load | None = None
    devices: tuple[str, ...] = ()
    host: HostUse = "cpus"
    path: PathKind | None = None
    tried: bool = True

    @property
    def within(self) -> Spread | None:
        """Returns the variance between runs that the interval implies; None without `coverage`."""
        low, high = self.low, self.high
        if low is None or high is None or self.coverage is None or not 0 < low <= high:
            return None
        coverage = max(self.coverage, _LEAST_COVERAGE)
        return within(low, high, coverage, self.degrees or _FEW)


def as_recorded(run: RunFigures) -> RunFigures:
    """Returns a run with intervals for the figures that have none: as wide as the largest
    difference between two recorded healthy runs over the figure's kind of path."""

    def ranged(cell: CellFigure) -> CellFigure:
        if cell.path is None or cell.figure is None or cell.coverage is not None:
            return cell  # one that was repeated and has no range varies too much
        least = 1 - RECORDED[cell.path].furthest
        low, high = cell.figure * least, cell.figure / least
        return replace(cell, low=low, high=high, coverage=COVERAGE, degrees=_FEW)

    return replace(run, cells=tuple(map(ranged, run.cells)))


def of_one_size(runs: Sequence[RunFigures]) -> list[RunFigures]:
    """Replaces default sizes, which depend on free memory, by the sizes of the first run, so that
    cells of the runs match. Leaves benchmarks with several sizes as they are."""
    if len({run.settings.sizes for run in runs}) > 1:
        return list(runs)  # someone chose them
    own = [{(cell.benchmark, cell.backend, cell.size) for cell in run.cells} for run in runs]
    names = [Counter((benchmark, backend) for benchmark, backend, _ in tables) for tables in own]
    several = {name for counts in names for name, count in counts.items() if count > 1}
    first = {one[:2]: one[2] for tables in reversed(own) for one in tables}

    def sized(cell: CellFigure) -> CellFigure:
        name = cell.benchmark, cell.backend
        size = cell.size if name in several else first[name]
        is_near = cell.size <= size * _NEAR and size <= cell.size * _NEAR
        return replace(cell, size=size) if is_near and size != cell.size else cell

    return [replace(run, cells=tuple(map(sized, run.cells))) for run in runs]


class RunFigures(msgspec.Struct, frozen=True, kw_only=True):
    """The figures of one run. `again` is true if the run only repeats another run's unclear cells.
    `busy` has other processes' ids by accelerator. `anew`: intervals were computed again."""

    id: str
    label: str
    started: str
    machine: Machine
    settings: Settings
    cells: tuple[CellFigure, ...]
    facts: dict[str, str | None] = {}
    simulated: bool = False
    again: bool = False
    busy: dict[str, tuple[int, ...]] = {}
    ended: bool = True
    anew: bool = False

    @property
    def name(self) -> str:
        return f"{self.label} {self.id}".strip()


def figures_of(run: Run, *, again: bool = False) -> RunFigures:
    return by_name(
        RunFigures,
        run,
        cells=tuple(
            _cell(figure, cell, run.machine)
            for result, figures in figures_by_result(run.results)
            for figure, cell in zip(figures, result.cells, strict=True)
        ),
        facts=facts_of(run),
        again=again,
        busy=at_work(run.machine.inventory, run.after, run.results),
        ended=run.finished is not None,
        anew=run.ranges == "anew",
    )


def _cell(figure: Figure, cell: CellResult, machine: Machine) -> CellFigure:
    if figure.median is not None and figure.slow_p95 is None:  # the file is older than these
        summary = summarize(cell.samples, figure.better)
        if summary is not None:
            figure = replace(figure, slow_p95=summary.slow_p95, slow_p99=summary.slow_p99)
    known = cell.interval
    return cell_figure(
        figure, known if known is not None and known.basis == "repetitions" else None, cell,
        bytes=bytes_of(cell, figure.size),
        devices=tuple(str(place) for place in cell.places if place.is_device),
        host=host_use(cell, machine),
        path=path_kind(cell, cell.bytes) if machine.simulated is None else None,  # it is quiet
        tried=cell.kind not in NOT_TRIED,
    )  # fmt: skip


def cell_figure(figure: Figure, *sources: msgspec.Struct | None, **more: Any) -> CellFigure:
    """Converts a figure. `sources` and `more` supply the fields that `figure` lacks."""
    if figure.status != "pass":
        more |= {"low": None, "high": None}
    known = figure.median if figure.status == "pass" else None
    more["figure"] = known if known is not None and known > 0 else None
    return by_name(CellFigure, figure, *sources, **_UNREAD, **more)


_UNREAD = dict.fromkeys(("median", "expected", "nominal"))
_UNREAD |= {"transfers": "", "verdict": "not judged", "n": 0}
"""What comparisons do not read. A baseline, which keeps many runs, leaves it out."""


Runs = Sequence[RunFigures]
_READINGS = ("CPU steal",)
"""Facts that every run reads anew; a difference in them is no change of the machine."""


def unlike(sides: Sequence[Runs]) -> tuple[Fact, ...]:
    """Returns the facts and settings that affect figures and differ between sides."""
    machines = [[run.machine for run in side] for side in sides]
    facts = [
        Fact(name, tuple(joined(map(read, side), "; ") for side in machines))
        for name, read in _MACHINE.items()
    ]
    if len({machine.host.hostname for machine in machines[0]}) < 2:
        hosts = (joined((one.host.hostname for one in side), "; ") for side in machines)
        facts.append(Fact("machine", tuple(hosts)))
    return differing((*facts, *settings_facts([[run.settings for run in side] for side in sides])))


def differences(sides: Sequence[Runs]) -> tuple[Fact, ...]:
    names = dict.fromkeys(name for side in sides for run in side for name in run.facts)
    facts = [
        Fact(name, tuple(joined((run.facts.get(name) for run in side), "; ") for side in sides))
        for name in names
        if name not in _READINGS
    ]
    lines = ((run.machine.known.host.command_line for run in side) for side in sides)
    facts.append(differing_options([joined(side, "; ") for side in lines]))
    known = {fact.name for fact in facts}
    others = settings_facts([[run.settings for run in side] for side in sides])
    return differing((*facts, *(fact for fact in others if fact.name not in known)))


def settings_facts(sides: Sequence[Sequence[Settings]]) -> tuple[Fact, ...]:
    every = [{name: value for one in side for name, value in _flat(one)} for side in sides]
    names = dict.fromkeys(name for own in every for name in own)
    return differing(Fact(name, tuple(own.get(name) for own in every)) for name in names)


def conditions(run: RunFigures) -> Hashable:
    """Returns what runs must have in common so that chance alone makes their figures differ: the
    machine, its state (driver, kernel) and the settings."""
    machine, simulation = run.machine, run.settings.simulation
    return (
        simulation and simulation.faults,
        machine.host.hostname,
        machine.host.kernel,
        machine.known.host.command_line,
        machine.known.host.governor,
        machine.linkgauge,
        tuple(device.driver for device in machine.all_devices),
        tuple(read(machine) for read in _MACHINE.values()),
        tuple(_flat(run.settings)),
    )


_MACHINE: dict[str, Callable[[Machine], str | None]] = {
    "simulated machine": lambda machine: machine.simulated,
    "CPU": lambda machine: machine.host.cpu_model,
    "CPUs": lambda machine: f"{machine.host.cpus}",
    "NUMA nodes": lambda machine: f"{len(machine.host.nodes)}",
    "accelerators": lambda machine: counted(one.model for one in machine.all_devices) or ABSENT,
    "hypervisor": lambda machine: machine.known.host.hypervisor or ABSENT,
}


def _flat(settings: Settings) -> list[tuple[str, str]]:
    known = msgspec.structs.asdict(replace(settings, simulation=None, timeout=None))
    for name in ("engines", "surroundings"):
        if known[name] is not None:
            known |= msgspec.structs.asdict(known.pop(name))
    known["sizes"] = ", ".join(map(format_size, settings.sizes))
    known |= {name: f"{known[name]:g} s" for name in ("max_time", "rate_time")}
    return [(name.replace("_", " "), f"{value}") for name, value in known.items()]

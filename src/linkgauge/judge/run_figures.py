"""What a comparison of runs reads of each run: a figure for each cell, and what it was measured on.

A baseline file keeps these alone, so that runs of weeks fit into one.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec
from msgspec.structs import asdict, replace

from linkgauge.model.cell_id import CellId
from linkgauge.model.history import Figure, figures_by_result
from linkgauge.model.host_use import HostUse, host_use
from linkgauge.model.load import Load
from linkgauge.model.machine import Machine
from linkgauge.model.result import CellResult, Definition, Run, Status
from linkgauge.model.settings import Settings
from linkgauge.model.stats.changes import within
from linkgauge.model.stats.spread import Spread
from linkgauge.model.stats.summary import summarize
from linkgauge.model.units import Better

from .machine_state import facts_of

_LEAST_COVERAGE = 0.5
_FEW = 6
"""Degrees of freedom of an interval that does not say."""


class CellFigure(CellId, frozen=True, kw_only=True):
    """A cell of one run. `figure` is the median of its samples (null: none, or not above 0), `low`
    and `high` its interval, which holds another run's figure with this `coverage` (null: it is of
    the samples alone, and tells nothing of other runs), with `degrees` of freedom. `slow_p95` and
    `slow_p99` are those of its summary. Figures of two units or definitions are never compared.
    `devices` take part; `host` is what of the host the figure depends on (a file that is older than
    this does not say)."""

    unit: str
    better: Better
    status: Status
    definition: Definition | None = None
    figure: float | None = None
    low: float | None = None
    high: float | None = None
    coverage: float | None = None
    degrees: int | None = None
    slow_p95: float | None = None
    slow_p99: float | None = None
    reason: str | None = None
    load: Load | None = None
    devices: tuple[str, ...] = ()
    host: HostUse = "cpus"

    @property
    def within(self) -> Spread | None:
        """The variance of the figure by its own interval, if that tells of other runs."""
        low, high = self.low, self.high
        if low is None or high is None or self.coverage is None or not 0 < low <= high:
            return None
        coverage = max(self.coverage, _LEAST_COVERAGE)
        return within(low, high, coverage, self.degrees or _FEW)


class RunFigures(msgspec.Struct, frozen=True, kw_only=True):
    """A run's cells, with its identity, machine and settings. `again`: it measured only cells that
    another run left in doubt. `facts` are of its machine, as texts by name; `busy` are the
    processes that accelerators had besides, by device."""

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

    @property
    def name(self) -> str:
        return f"{self.label} {self.id}".strip()


def figures_of(run: Run, *, again: bool = False) -> RunFigures:
    """What a comparison reads of this run."""
    return RunFigures(
        id=run.id,
        label=run.label,
        started=run.started,
        machine=run.machine,
        settings=run.settings,
        cells=tuple(_cells(run)),
        facts=facts_of(run),
        simulated=run.simulated,
        again=again,
        busy=_busy(run),
    )


def _cells(run: Run) -> Iterator[CellFigure]:
    for result, figures in figures_by_result(run.results):
        for figure, cell in zip(figures, result.cells, strict=True):
            yield _cell(figure, cell, run.machine)


def _cell(figure: Figure, cell: CellResult, machine: Machine) -> CellFigure:
    if figure.median is not None and figure.slow_p95 is None:  # the file is older than these
        summary = summarize(cell.samples, figure.better)
        if summary is not None:
            figure = replace(figure, slow_p95=summary.slow_p95, slow_p99=summary.slow_p99)
    interval, passed = cell.interval, figure.status == "pass"
    by_visits = interval is not None and interval.basis == "visits"
    return cell_figure(
        figure,
        low=figure.low if passed else None,
        high=figure.high if passed else None,
        coverage=interval.coverage if interval is not None and by_visits else None,
        degrees=interval.degrees if interval is not None else None,
        reason=cell.reason,
        load=cell.load,
        devices=tuple(str(place) for place in cell.places if place.is_device),
        host=host_use(cell, machine),
    )


def cell_figure(figure: Figure, **more: Any) -> CellFigure:
    """What a comparison reads of a figure, with what only the run itself knows of it."""
    known = figure.median if figure.status == "pass" else None
    return CellFigure(
        **asdict(figure.id.id),
        unit=figure.unit,
        better=figure.better,
        status=figure.status,
        definition=figure.id.definition or None,  # type: ignore[arg-type]  # as it was written
        figure=known if known is not None and known > 0 else None,
        slow_p95=figure.slow_p95,
        slow_p99=figure.slow_p99,
        **more,
    )


def _busy(run: Run) -> dict[str, tuple[int, ...]]:
    """The processes of others on each accelerator, before the run or after it."""
    found: dict[str, tuple[int, ...]] = {}
    for inventory in (run.machine.inventory, run.after):
        for one in inventory.accelerators if inventory is not None else ():
            if one.processes:
                own = found.get(one.memory, ())
                found[one.memory] = tuple(dict.fromkeys((*own, *one.processes)))
    return found

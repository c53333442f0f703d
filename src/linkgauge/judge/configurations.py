"""Configurations of a machine, compared: a host and its guests, a guest pinned in several ways.

A configuration is all runs of one label: a side of a comparison of runs (run_comparison.py). What
is compared are a few aspects of each run.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

import msgspec
from msgspec.structs import replace

from linkgauge.benchmarks.vm import ASPECTS, Aspect
from linkgauge.model.errors import InputError
from linkgauge.model.grouped import grouped
from linkgauge.model.names import hint
from linkgauge.model.result import Run
from linkgauge.model.stats.changes import Aim
from linkgauge.model.units import Better

from .machine_facts import ABSENT, Fact, differing_facts, hypervisor_of
from .run_comparison import RunCell, compare_runs
from .run_figures import CellFigure, RunFigures, figures_of
from .side_tests import Sides

SIGNIFICANCE = 0.05
"""Of all differences of a comparison together."""


class Difference(msgspec.Struct, frozen=True):
    """A figure ÷ the baseline's, with its interval and the p of a difference as clear among all
    that are compared: null where nothing tells how much runs vary."""

    ratio: float
    low: float | None = None
    high: float | None = None
    p: float | None = None

    @property
    def is_proven(self) -> bool:
        """Whether the figures differ."""
        return self.p is not None and self.p < SIGNIFICANCE


class Figure(msgspec.Struct, frozen=True):
    """What one configuration reaches, in the aspect's unit, from so many `runs`: the geometric mean
    of their medians; `low` and `high` bound its true value, null where too little was measured to
    tell. `against` is null of the baseline itself, and without it."""

    median: float
    low: float | None
    high: float | None
    runs: int
    against: Difference | None = None


class Compared(msgspec.Struct, frozen=True):
    """One aspect: its `unit` and which figures are `better`, and a figure for each configuration,
    null where it was not measured."""

    name: str
    of: str
    benchmark: str
    unit: str
    better: Better
    figures: tuple[Figure | None, ...]


class Configuration(msgspec.Struct, frozen=True):
    """A label, with the ids of its runs, the last one last."""

    label: str
    runs: tuple[str, ...]


class Comparison(msgspec.Struct, frozen=True):
    """Configurations on one accelerator, the baseline first; what was measured of them, and the
    facts in which their machines differ, as the last run of each had them."""

    accelerator: str
    configurations: tuple[Configuration, ...]
    compared: tuple[Compared, ...]
    facts: tuple[Fact, ...]
    simulated: bool = False


def compare(
    accelerator: str,
    runs: Iterable[Run],
    against: str | None = None,
    aspects: Sequence[Aspect] = ASPECTS,
) -> Comparison:
    """Compares the labels of these runs by `aspects`. Raises InputError if `against` is none of
    them."""
    labels = _by_label(runs)
    if against is not None and against not in labels:
        raise InputError(f"no run is labelled {against!r}{hint(against, labels)}")
    first = against or _baseline(labels)
    ordered = [first, *(label for label in labels if label != first)]
    groups = [labels[label] for label in ordered]
    figures = [[figures_of(run) for run in group] for group in groups]
    sources = {aspect: _source(aspect, figures) for aspect in aspects}
    sides = [[_of_aspects(run, sources) for run in group] for group in figures]
    found = compare_runs(Sides(ordered, sides), Aim(SIGNIFICANCE))
    cells = {cell.row: cell for cell in found.cells}
    return Comparison(
        accelerator,
        tuple(Configuration(label, tuple(run.id for run in labels[label])) for label in ordered),
        tuple(_compared(one, cells[one.name]) for one in aspects if one.name in cells),
        differing_facts([group[-1] for group in groups]),
        any(run.simulated for group in groups for run in group),
    )


def _by_label(runs: Iterable[Run]) -> dict[str, list[Run]]:
    """The runs of each label, in the order of their beginning."""
    return grouped((run.label, run) for run in sorted(runs, key=lambda run: run.started))


def _baseline(labels: Mapping[str, Sequence[Run]]) -> str:
    """The only label without a hypervisor: the host; else the one that was measured first."""
    hosts = [label for label, runs in labels.items() if hypervisor_of(runs[-1]) == ABSENT]
    return hosts[0] if len(hosts) == 1 else next(iter(labels))


def _source(aspect: Aspect, sides: Sequence[Sequence[RunFigures]]) -> tuple[str, str] | None:
    """The first source that any run has: all figures are of one benchmark."""
    runs = [run for side in sides for run in side]
    return next((one for one in aspect.sources if any(_cells(run, one) for run in runs)), None)


def _cells(run: RunFigures, source: tuple[str, str]) -> list[CellFigure]:
    name, pattern = source
    return [
        cell
        for cell in run.cells
        if cell.benchmark == name
        and cell.figure is not None
        and re.fullmatch(pattern, f"{cell.row}, {cell.column}")
    ]


def _of_aspects(run: RunFigures, sources: Mapping[Aspect, tuple[str, str] | None]) -> RunFigures:
    """The run with a cell for each aspect that it has, in the aspect's row, whatever its size."""
    chosen = (_chosen(aspect, _cells(run, source)) for aspect, source in sources.items() if source)
    return replace(run, cells=tuple(one for one in chosen if one is not None))


def _chosen(aspect: Aspect, found: Sequence[CellFigure]) -> CellFigure | None:
    """With figures for each CPU, where the aspect has these: the column is their number."""
    if not found:
        return None
    worst = min if found[0].better == "higher" else max
    one = found[-1] if aspect.choice == "last" else worst(found, key=lambda cell: cell.figure or 0)
    by = int(one.column) if aspect.for_each_cpu and one.column.isdecimal() else 1
    scaled = {name: getattr(one, name) for name in ("figure", "low", "high")}
    shares = {name: value and value / by for name, value in scaled.items()}
    return replace(one, backend="", size=0, row=aspect.name, column="", repeat=0, **shares)


def _compared(aspect: Aspect, cell: RunCell) -> Compared:
    figures = list[Figure | None]()
    base = cell.sides[0].figure if cell.sides[0] is not None else None
    for number, side in enumerate(cell.sides):
        if side is None or side.figure is None:
            figures.append(None)
            continue
        change = cell.changes[number - 1].change if number else None
        against = None
        if change is not None:
            against = Difference(change.ratio, change.low, change.high, change.holm)
        elif number and base:
            against = Difference(side.figure / base)
        figures.append(Figure(side.figure, side.low, side.high, side.runs, against))
    unit, better = cell.unit, cell.better
    return Compared(aspect.name, aspect.of, cell.benchmark, unit, better, tuple(figures))

"""Configurations of a machine, compared: a host and its guests, a guest pinned in several ways.

A configuration is all runs of one label. Its figure is the median of what they measured. The
interval is that which another run of it falls into: from the variation between runs, pooled over
alike configurations, once that rests on enough of them, else from the variation between the visits
of a run (model/stats/intervals.py). Two configurations differ where the interval of the ratio of
their figures does not hold 1.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from statistics import median
from typing import NamedTuple

import msgspec

from linkgauge.benchmarks.vm import ASPECTS, Aspect
from linkgauge.model.errors import InputError
from linkgauge.model.names import hint
from linkgauge.model.result import CellResult, Result, Run
from linkgauge.model.stats.intervals import Difference, Estimate, VisitSamples, estimates, ratio
from linkgauge.model.stats.modes import cut
from linkgauge.model.units import Better

from .machine_facts import ABSENT, Fact, differing_facts, hypervisor_of

_LEAST_DEGREES = 3
"""Of the variation between runs, so that its interval is not wider than what it shows: Student's t
is 3.2 then, and 12.7 with one."""


class Figure(msgspec.Struct, frozen=True):
    """What one configuration reaches, in the aspect's unit, from so many `runs`; `low` and `high`
    bound what another run reaches, null where too little was measured to tell. `against` is null
    of the baseline itself, and without it."""

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
    known = (_compared(aspect, groups) for aspect in aspects)
    return Comparison(
        accelerator,
        tuple(Configuration(label, tuple(run.id for run in labels[label])) for label in ordered),
        tuple(one for one in known if one is not None),
        differing_facts([group[-1] for group in groups]),
        any(run.simulated for group in groups for run in group),
    )


def _by_label(runs: Iterable[Run]) -> dict[str, list[Run]]:
    """The runs of each label, in the order of their beginning."""
    labels: dict[str, list[Run]] = {}
    for run in sorted(runs, key=lambda run: run.started):
        labels.setdefault(run.label, []).append(run)
    return labels


def _baseline(labels: Mapping[str, Sequence[Run]]) -> str:
    """The only label without a hypervisor: the host; else the one that was measured first."""
    hosts = [label for label, runs in labels.items() if hypervisor_of(runs[-1]) == ABSENT]
    return hosts[0] if len(hosts) == 1 else next(iter(labels))


class _Measured(NamedTuple):
    """What a run has of an aspect: its figure, the interval that the run states with its degrees of
    freedom, and the samples by visit."""

    figure: float
    interval: tuple[float, float] | None
    degrees: int
    visits: VisitSamples


def _compared(aspect: Aspect, groups: Sequence[Sequence[Run]]) -> Compared | None:
    """None if no run measured it. All figures are of one benchmark: the first that any has."""
    for source in aspect.sources:
        found = [
            [one for run in runs if (one := _cell_of(run, source, aspect)) is not None]
            for runs in groups
        ]
        sheets = [sheet for of_label in found for sheet, _ in of_label]
        if sheets:
            taken = [[_measured(cell, aspect) for _, cell in of_label] for of_label in found]
            figures = tuple(_against_first(taken, _estimates(taken)))
            unit, better = sheets[0].unit, sheets[0].better
            return Compared(aspect.name, aspect.of, source[0], unit, better, figures)
    return None


def _cell_of(run: Run, source: tuple[str, str], aspect: Aspect) -> tuple[Result, CellResult] | None:
    name, pattern = source
    found = [
        (result, cell)
        for result in run.results
        if result.benchmark == name
        for cell in result.cells
        if cell.status == "pass"
        and cell.summary is not None
        and re.fullmatch(pattern, f"{cell.row}, {cell.column}")
    ]
    if aspect.choice == "last" or not found:
        return found[-1] if found else None
    worst = min if found[0][0].better == "higher" else max
    return worst(found, key=lambda one: _figure_of(one[1]))


def _figure_of(cell: CellResult) -> float:
    """The headline figure of a cell that has one."""
    return cell.summary.median if cell.summary is not None else math.nan


def _measured(cell: CellResult, aspect: Aspect) -> _Measured:
    """With figures for each CPU, where the aspect has these: the column is their number."""
    by = int(cell.column) if aspect.for_each_cpu and cell.column.isdecimal() else 1
    interval = cell.summary.ci95 if cell.summary is not None else None
    samples = [sample / by for sample in cell.samples]
    return _Measured(
        _figure_of(cell) / by,
        (interval[0] / by, interval[1] / by) if interval is not None else None,
        (cell.interval.degrees or 0) if cell.interval is not None else 0,
        list(cut(samples, map(sum, cell.visits))) if cell.visits else [samples],
    )


def _estimates(taken: Sequence[Sequence[_Measured]]) -> list[Estimate | None]:
    """The estimate of each configuration, from its runs."""
    by_run = estimates([[_all(run) for run in runs] for runs in taken])
    if any(by_run) and all(one is None or one.degrees >= _LEAST_DEGREES for one in by_run):
        return by_run
    return [_of_visits(runs) for runs in taken]


def _all(run: _Measured) -> list[float]:
    return [sample for visit in run.visits for sample in visit]


def _of_visits(runs: Sequence[_Measured]) -> Estimate | None:
    """From the visits of all runs; of a single run, the interval that the run itself states."""
    if len(runs) != 1:
        return estimates([[visit for run in runs for visit in run.visits]])[0]
    run = runs[0]
    if run.interval is None or min(run.figure, *run.interval) <= 0:
        return None
    low, high = map(math.log, run.interval)
    return Estimate(run.figure, low, high, run.degrees, 1)


def _against_first(
    taken: Sequence[Sequence[_Measured]], known: Sequence[Estimate | None]
) -> Iterator[Figure | None]:
    medians = [
        estimate.figure if estimate else median(run.figure for run in runs) if runs else None
        for runs, estimate in zip(taken, known, strict=True)
    ]
    for at, (runs, middle, estimate) in enumerate(zip(taken, medians, known, strict=True)):
        if middle is None:
            yield None
            continue
        low, high = estimate.interval() if estimate else (None, None)
        against = _ratio(medians[0], middle, known[0], estimate) if at else None
        yield Figure(middle, low, high, len(runs), against)


def _ratio(
    base: float | None, other: float, one: Estimate | None, two: Estimate | None
) -> Difference | None:
    if not base:
        return None
    if one is None or two is None:
        return Difference(other / base)
    return ratio(one, two)

"""Compares configurations of a machine, such as a host and its guests. Runs with the same label
form a configuration. Only a few aspects of runs, such as bandwidths, are compared."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from msgspec.structs import replace

from linkgauge.benchmarks.vm import ASPECTS, Aspect
from linkgauge.model.documents.result import Run
from linkgauge.model.errors import InputError
from linkgauge.model.grouped import grouped
from linkgauge.model.names import hint
from linkgauge.model.stats.changes import Aim

from .likeness import CellFigure, RunFigures, figures_of
from .machine_state import ABSENT, Fact, differing_facts, hypervisor_of
from .run_comparison import RunCell, RunComparison, compare_runs
from .side_tests import Sides

SIGNIFICANCE = 0.05
"""The probability that chance alone makes any difference of a comparison look significant."""


class ConfigurationComparison(NamedTuple):
    """A comparison of configurations. `found` compares their runs, the baseline first. `aspects`
    maps an aspect, such as bandwidth, to its cell. `facts` are the differing facts."""

    accelerator: str
    found: RunComparison
    aspects: Mapping[Aspect, RunCell]
    facts: tuple[Fact, ...]


def compare(
    accelerator: str,
    runs: Iterable[Run],
    against: str | None = None,
    aspects: Sequence[Aspect] = ASPECTS,
) -> ConfigurationComparison:
    """Compares the runs of each label with those labelled `against` (default: the label of runs on
    a host, not in a virtual machine). Raises InputError if no run has this label."""
    labels = grouped((run.label, run) for run in sorted(runs, key=lambda run: run.started))
    if against is not None and against not in labels:
        raise InputError(f"no run is labelled {against!r}{hint(against, labels)}")
    first = against or _baseline(labels)
    ordered = [first, *(label for label in labels if label != first)]
    groups = [labels[label] for label in ordered]
    figures = [[figures_of(run) for run in group] for group in groups]
    # The first of an aspect's sources that any run has, so that all sides are of one benchmark.
    every = [run for group in figures for run in group]
    sources = [
        (aspect, source)
        for aspect in aspects
        for source in [one for one in aspect.sources if any(_cells(run, one) for run in every)][:1]
    ]

    def of_aspects(run: RunFigures) -> RunFigures:
        chosen = (_chosen(aspect, _cells(run, source)) for aspect, source in sources)
        return replace(run, cells=tuple(one for one in chosen if one is not None))

    sides = [list(map(of_aspects, group)) for group in figures]
    found = compare_runs(Sides(ordered, sides), Aim(SIGNIFICANCE))
    cells = {cell.row: cell for cell in found.cells}
    return ConfigurationComparison(
        accelerator,
        found,
        {one: cells[one.name] for one in aspects if one.name in cells},
        differing_facts([group[-1] for group in groups]),
    )


def _baseline(labels: Mapping[str, Sequence[Run]]) -> str:
    hosts = [label for label, runs in labels.items() if hypervisor_of(runs[-1]) == ABSENT]
    return hosts[0] if len(hosts) == 1 else next(iter(labels))


def _cells(run: RunFigures, source: tuple[str, str]) -> list[CellFigure]:
    name, pattern = source
    return [
        cell
        for cell in run.cells
        if cell.benchmark == name
        and cell.figure is not None
        and re.fullmatch(pattern, f"{cell.row}, {cell.column}")
    ]


def _chosen(aspect: Aspect, found: Sequence[CellFigure]) -> CellFigure | None:
    if not found:
        return None
    worst = min if found[0].better == "higher" else max
    one = found[-1] if aspect.choice == "last" else worst(found, key=lambda cell: cell.figure or 0)
    by = int(one.column) if aspect.for_each_cpu and one.column.isdecimal() else 1
    scaled = {name: getattr(one, name) for name in ("figure", "low", "high")}
    shares = {name: value and value / by for name, value in scaled.items()}
    return replace(one, backend="", size=0, row=aspect.name, column="", repeat=0, **shares)

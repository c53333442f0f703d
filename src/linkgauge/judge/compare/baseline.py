"""Summarises several runs of one machine, or of similar machines, as a baseline."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import median
from typing import Literal

import msgspec

from linkgauge.engine.kept.runs import read_kept
from linkgauge.model.by_name import by_name
from linkgauge.model.cell_id import CellId
from linkgauge.model.errors import InputError
from linkgauge.model.stats.moments import LEAST
from linkgauge.model.stats.spread import CellLogs, spreads
from linkgauge.model.stats.summary import robust_deviation
from linkgauge.model.units import Better

from .likeness import CellFigure, RunFigures
from .side_tests import Logs, Sides, logs_of, table_of

SCHEMA: Literal["linkgauge.baseline/1"] = "linkgauge.baseline/1"
FAR = 3.5
"""Deviations from the median beyond which a run is an outlier (B. Iglewicz, D. Hoaglin, How to
Detect and Handle Outliers, 1993): robust ones, which outliers hardly move."""
_LEAST_RUNS = 4
"""The fewest runs among which one can be found to be far from the others."""


class BaselineCell(CellId, frozen=True, kw_only=True, omit_defaults=False):
    """One cell of a baseline: the median and range of its figures in all runs. `deviation` is
    relative, null if unknown. `outliers` are ids of runs far from the median."""

    unit: str
    better: Better
    runs: int
    median: float
    low: float
    high: float
    deviation: float | None = None
    outliers: tuple[str, ...] = ()


class Baseline(msgspec.Struct, frozen=True, kw_only=True):
    """A baseline made from runs. `outliers` maps ids of runs to their numbers of outlying cells."""

    schema: Literal["linkgauge.baseline/1"] = SCHEMA
    made: str
    cells: tuple[BaselineCell, ...]
    outliers: dict[str, int] = {}
    runs: tuple[RunFigures, ...]


def baseline_of(runs: Sequence[RunFigures], made: str) -> Baseline:
    """Returns the baseline of these runs. Raises InputError if no cell has a figure."""
    table = table_of(Sides(("",), (runs,))).values()
    known = [(found.any, logs) for found in table if (logs := logs_of(found.sides[0]))]
    if not known:
        raise InputError("none of these runs has a figure")
    every = [CellLogs(cell.table, [logs]) for cell, logs in known]
    cells = tuple(
        _cell(cell, logs, runs, None if spread is None else spread.deviation)
        for (cell, logs), spread in zip(known, spreads(every), strict=True)
    )
    counts = Counter(name for cell in cells for name in cell.outliers)
    return Baseline(made=made, cells=cells, outliers=dict(counts), runs=tuple(runs))


def _cell(
    cell: CellFigure, by_run: Logs, runs: Sequence[RunFigures], deviation: float | None
) -> BaselineCell:
    logs = by_run.values()
    return by_name(
        BaselineCell,
        cell,
        runs=len(logs),
        median=math.exp(median(logs)),
        low=math.exp(min(logs)),
        high=math.exp(max(logs)),
        deviation=deviation,
        outliers=tuple(runs[number].name for number in _outliers(by_run)),
    )


def _outliers(logs: Logs) -> Iterator[int]:
    if len(logs) < _LEAST_RUNS:
        return
    middle = median(logs.values())
    scale = max(robust_deviation(abs(log - middle) for log in logs.values()), LEAST)
    yield from (number for number, log in logs.items() if abs(log - middle) > FAR * scale)


def read_baseline(path: Path) -> Baseline | None:
    """Reads a baseline. Returns None for another file. Raises InputError for a damaged baseline."""
    is_file = path.is_file() and path.suffix == ".json"
    return read_kept(path, Baseline, SCHEMA) if is_file else None

"""Data types for the figures of cells in a run, and for the content of a history of runs.

Figures are in the cell's unit (SI base units); absent is null. Moments are ISO 8601 in UTC."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import msgspec

from linkgauge.model.by_name import by_name, shown_of
from linkgauge.model.cell_id import CellId, numbered
from linkgauge.model.settings import Settings
from linkgauge.model.units import Better

from .result import CellResult, Result, RunVerdict, Status, Verdict

# What a run says of a cell: the one row that history, exporter, watch, gate and tables hold.


class SeriesId(CellId, frozen=True, gc=False, omit_defaults=False):
    """The identity of a cell over several runs of a machine.

    transfers: The cell's transfers, in the notation. Other engines or other memory make another
        identity, even in the same row and column.
    definition: How a total is computed; empty if the figure is no total."""

    transfers: str = ""
    definition: str = ""

    @property
    def cell(self) -> SeriesId:
        """The same identity as a plain SeriesId, without the fields that a subclass adds."""
        return SeriesId(*(getattr(self, name) for name in SeriesId.__struct_fields__))


class Figure(SeriesId, frozen=True, gc=False, kw_only=True):
    """The figure of a cell in a run, in its `unit`. `figure` is the headline. `median` is the
    median of the `n` samples, with the interval from `low` to `high`; `slow_p95` and `slow_p99` are
    percentiles of the slow side. `expected` is the expected figure, and `nominal` the figure
    expected with all links at their best. `share` is how much the figure is of
    the latter. None marks a figure that does not exist.

    A field that is added here is taken from the field of that name of the cell's result or of its
    statistics. It is a column of the history, and comparisons have it."""

    unit: str
    better: Better
    status: Status
    verdict: Verdict = "not judged"
    figure: float | None = None
    median: float | None = None
    low: float | None = None
    high: float | None = None
    slow_p95: float | None = None
    slow_p99: float | None = None
    n: int = 0
    expected: float | None = None
    nominal: float | None = None
    share: float | None = None


def figures_by_result(results: Iterable[Result]) -> Iterator[tuple[Result, list[Figure]]]:
    """Yields each result with the figures of its cells."""
    for result, _, repeat in numbered(results):
        yield result, [figure_of(result, cell, repeat) for cell in result.cells]


def figure_of(result: Result, cell: CellResult, repeat: int = 0) -> Figure:
    own = {**shown_of(cell), "repeat": repeat, "definition": cell.definition or ""}
    return by_name(Figure, cell, cell.summary, result, **own)


DESCRIPTION = "description"
"""The name, among the settings of a simulated machine, of the digest of its description."""


class PastRun(msgspec.Struct, frozen=True, kw_only=True):
    """A run of the history.

    number: The number of the run in the history.
    id: The run's name: the name of its folder, or its start time if it is not kept.
    label: The label that it was given.
    host: The name of the host, or of the description of a simulated machine; `unknown` if there is
        no name.
    accelerators: The models of the accelerators found, separated by commas; `cpu` if there are
        none.
    started: When it began (ISO 8601, UTC).
    finished: When it ended (ISO 8601, UTC); null if it was interrupted.
    simulated: Whether it was measured on a simulated machine.
    profiled: Whether it was measured under a profiler.
    profile: The name of its profile.
    status: The worst status of the run's results.
    verdict: The verdict on the run; null if it is not known, as of runs of earlier versions.
    cells: How many cells it has.
    passed: How many cells passed.
    low: How many cells are lower than expected.
    path: The folder that it was kept in, on the host that measured it; null if it was not kept.
    setup: The digest of the settings that figures depend on.
    state: The number of the machine's state in the history.
    machine: The number of the machine in the history.
    benchmarks: The benchmarks that the run measured.
    lost: How many cells are worse than in earlier runs; null if it was not compared with any.
    accepted: When its level was accepted as the usual one (ISO 8601, UTC); null if it was not."""

    number: int
    id: str
    label: str
    host: str
    accelerators: str
    started: str
    finished: str | None
    simulated: bool
    profiled: bool
    profile: str
    status: Status
    cells: int
    passed: int
    low: int
    path: str | None
    setup: str
    state: int
    machine: int
    benchmarks: tuple[str, ...] = ()
    verdict: RunVerdict | None = None
    lost: int | None = None
    accepted: str | None = None


class EarlierRun(msgspec.Struct, frozen=True):
    """An earlier run of the same machine, to compare a later run with: the run, the figures of its
    cells, its settings, and the facts of the machine's state."""

    run: PastRun
    figures: tuple[Figure, ...]
    settings: Settings
    state: dict[str, str]


class PastCell(SeriesId, frozen=True, gc=False, kw_only=True):
    """A measured cell in the history. `number` is the key of the cell in the database."""

    number: int
    unit: str
    better: Better


class EarlierMedians(NamedTuple):
    """The medians of earlier runs of a machine, for a comparison that needs no more. `runs` is the
    number of runs. Each cell of `cells` has the medians of the runs in which it passed. The runs
    have numbers from 1, the latest run first. The first of them, `low` in number, were worse than
    the others. `state` has the facts of the machine's state in the latest of the others."""

    runs: int
    state: dict[str, str]
    cells: Sequence[tuple[PastCell, dict[int, float]]]
    low: int = 0


class Point(msgspec.Struct, frozen=True, gc=False):
    """A cell's figure in one run of a history.

    run: The run's number.
    figure: The figure, in the cell's unit.
    low: The low end of the figure's interval; null if there is no interval.
    high: The high end of the figure's interval; null if there is no interval."""

    run: int
    figure: float
    low: float | None
    high: float | None


class Series(SeriesId, frozen=True, gc=False, kw_only=True):
    """The figures of a cell over the runs of one machine under one setup.

    unit: The unit of its figures.
    better: Whether higher or lower figures are better.
    points: The figures, in the order of time."""

    unit: str
    better: Better
    points: tuple[Point, ...]


class History(msgspec.Struct, frozen=True, kw_only=True):
    """The history of a benchmark's cells on one machine, measured with the same settings.

    host: The name of the host, or of the description of a simulated machine.
    accelerators: The models of the machine's accelerators, separated by commas; `cpu` if there are
        none.
    simulated: Whether the machine is simulated.
    settings: The settings that differ from the defaults.
    runs: The runs, in the order of time.
    states: The facts of each state of the machine, by the state's number in the history.
    series: The figures of each cell over these runs."""

    host: str
    accelerators: str
    simulated: bool
    settings: dict[str, str]
    runs: tuple[PastRun, ...]
    states: dict[int, dict[str, str]]
    series: tuple[Series, ...]

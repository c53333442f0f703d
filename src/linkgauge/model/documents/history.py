"""A cell's figure in a run, in the one form that history, exporter, watch, gate and tables use; and
the contents of a history of runs.

Figures are in the cell's unit (SI base units); absent is null. Moments are ISO 8601 in UTC."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec

from linkgauge.model.cell_id import CellId, SheetId, numbered
from linkgauge.model.settings import Settings
from linkgauge.model.units import Better

from .result import CellResult, Result, Status, Verdict

# What a run says of a cell: the one row that history, exporter, watch, gate and tables hold.


class SeriesId(CellId, frozen=True, gc=False, omit_defaults=False):
    """The identity of a cell over several runs of a machine.

    transfers: Its transfers, in the notation: the same place may be measured by other engines or
        from other memory.
    definition: How a total is computed; empty of other figures."""

    transfers: str = ""
    definition: str = ""

    @property
    def cell(self) -> SeriesId:
        """The identity without the fields that a subclass adds."""
        return SeriesId(*(getattr(self, name) for name in SeriesId.__struct_fields__))


class Figure(msgspec.Struct, frozen=True, gc=False):
    """The figure of a cell in a run, in its `unit`: the headline (`value`), the `median` of its `n`
    samples with its interval (`low` to `high`), and percentiles of the slow side; the `expected`
    figure, and the `nominal` one with all links at their best. None marks a figure that does not
    exist."""

    id: SeriesId
    unit: str
    better: Better
    status: Status
    verdict: Verdict = "unknown"
    value: float | None = None
    median: float | None = None
    low: float | None = None
    high: float | None = None
    slow_p95: float | None = None
    slow_p99: float | None = None
    n: int = 0
    expected: float | None = None
    nominal: float | None = None


def figures_by_result(results: Iterable[Result]) -> Iterator[tuple[Result, list[Figure]]]:
    """Yields each result with the figures of its cells."""
    for result, of, repeat in numbered(results):
        yield result, [figure_of(result, cell, of, repeat) for cell in result.cells]


def figure_of(result: Result, cell: CellResult, of: SheetId, repeat: int = 0) -> Figure:
    transfers = " & ".join(map(str, cell.transfers))
    name = SeriesId(*of, *cell.place, repeat, transfers, cell.definition or "")
    expected, summary = cell.expected, cell.summary
    low, high = (summary.ci95 if summary is not None else None) or (None, None)
    return Figure(
        name,
        result.unit,
        result.better,
        cell.status,
        cell.verdict,
        cell.headline,
        median=None if summary is None else summary.median,
        low=low,
        high=high,
        slow_p95=None if summary is None else summary.slow_p95,
        slow_p99=None if summary is None else summary.slow_p99,
        n=0 if summary is None else summary.n,
        expected=None if expected is None else expected.figure,
        nominal=None if expected is None else expected.nominal,
    )


DESCRIPTION = "description"
"""The name, among the settings of a simulated machine, of the digest of its description."""


class PastRun(msgspec.Struct, frozen=True, kw_only=True):
    """A run of the history.

    number: The history's own number of it.
    id: The run's name: that of its folder, or its start if it is not kept.
    label: The label that it was given.
    host: The name of its host, or of the description of a simulated machine; `unknown` without one.
    accelerators: The models that it found, with commas; `cpu` if none.
    started: When it began (ISO 8601, UTC).
    finished: When it ended (ISO 8601, UTC); null if it was interrupted.
    simulated: Whether it was measured on a simulated machine.
    profiled: Whether it was measured under a profiler.
    profile: The name of its profile.
    status: The worst of its results.
    cells: How many cells it has.
    passed: How many of these passed.
    low: How many of these are lower than expected.
    path: The folder that it was kept in, on the host that measured it; null if it was not kept.
    setup: The digest of the settings that figures depend on.
    state: The history's number of the state of its machine.
    machine: The history's number of its machine.
    benchmarks: The benchmarks that it measured.
    """

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


class EarlierRun(msgspec.Struct, frozen=True):
    """An earlier run for comparison with a later one of the same machine: its cells, its settings,
    and the facts of its machine's state."""

    run: PastRun
    figures: tuple[Figure, ...]
    settings: Settings
    state: dict[str, str]


class Point(msgspec.Struct, frozen=True, gc=False):
    """A cell's figure in a run.

    run: The run's number.
    figure: The figure, in the cell's unit.
    low: The low end of its interval; null if it has none.
    high: The high end of its interval; null if it has none.
    """

    run: int
    figure: float
    low: float | None
    high: float | None


class Series(SeriesId, frozen=True, gc=False, kw_only=True):
    """The figures of a cell over the runs of one machine under one setup.

    unit: The unit of its figures.
    better: Which figures are better.
    points: Its figures, in the order of time."""

    unit: str
    better: Better
    points: tuple[Point, ...]


class History(msgspec.Struct, frozen=True, kw_only=True):
    """The cells of a benchmark on one machine under one setup.

    host: The name of the host, or of the description of a simulated machine.
    accelerators: The models of its accelerators, with commas; `cpu` if it has none.
    simulated: Whether it is a simulated machine.
    settings: What of the setup differs from the defaults.
    runs: The runs, in the order of time.
    states: The facts of each state of the machine, by the history's number of it.
    series: The cells over these runs.
    """

    host: str
    accelerators: str
    simulated: bool
    settings: dict[str, str]
    runs: tuple[PastRun, ...]
    states: dict[int, dict[str, str]]
    series: tuple[Series, ...]

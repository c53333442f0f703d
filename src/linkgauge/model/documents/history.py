"""The figures of a run's cells in SI base units, and the content of a history. Times are in UTC."""

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
    """The identity of a cell across several runs of a machine.

    transfers: The cell's transfers, such as `host:0 -> cuda:0 by ce`, joined by ` & `.
    definition: How a total of several transfers is computed; empty if the figure is not a total."""

    transfers: str = ""
    definition: str = ""

    @property
    def cell(self) -> SeriesId:
        return SeriesId(*(getattr(self, name) for name in SeriesId.__struct_fields__))


class Figure(SeriesId, frozen=True, gc=False, kw_only=True):
    """The figure of a cell in a run. Most fields are copied by name from the cell's result and its
    statistics. Each field is a column of the history, and is compared between runs."""

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
    label: The label that the user gave.
    host: The name of the host, or of a simulated machine's description; `unknown` without a name.
    accelerators: The models of the accelerators, separated by commas; `cpu` if there are none.
    started: When it began (ISO 8601, UTC).
    finished: When it ended (ISO 8601, UTC); null if it was interrupted.
    simulated: Whether it was measured on a simulated machine.
    profiled: Whether it was measured under a profiler.
    profile: The name of its profile.
    status: The worst status of the run's results.
    verdict: The verdict on the run; null if unknown, such as for runs of earlier versions.
    cells: How many cells it has.
    passed: How many cells passed.
    low: How many cells perform worse than expected.
    path: The folder that it was kept in, on the host that measured it; null if it was not kept.
    setup: The digest of the settings that figures depend on.
    state: The number that the history gives to the machine's state, such as its driver versions.
    machine: The number that the history gives to the machine.
    benchmarks: The benchmarks that the run measured.
    lost: How many cells are worse than in earlier runs; null if there was no comparison.
    accepted: When its figures were accepted as usual (ISO 8601, UTC); null if they were not."""

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
    run: PastRun
    figures: tuple[Figure, ...]
    settings: Settings
    state: dict[str, str]


class PastCell(SeriesId, frozen=True, gc=False, kw_only=True):
    number: int
    unit: str
    better: Better


class EarlierMedians(NamedTuple):
    """The medians of each cell in a machine's earlier runs, by run number (1 is the latest). Runs
    in which a cell did not pass are left out. Runs 1 to `low` were worse than the runs before.
    `state` has the facts about the machine in run `low` + 1."""

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
    accelerators: The models of the accelerators, separated by commas; `cpu` if there are none.
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

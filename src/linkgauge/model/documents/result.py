"""A run as `--json` writes it. A missing value is null, never 0. Figures are in SI base units."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from operator import attrgetter
from typing import Annotated, Any, Literal

import msgspec
from msgspec.structs import replace

from linkgauge.model import joining, shareable
from linkgauge.model.counters import Counters, Load, joined_loads, total
from linkgauge.model.curves import Levels, SizeLine
from linkgauge.model.documents.expected import Earlier, Waiver
from linkgauge.model.errors import OutcomeKind, Phase
from linkgauge.model.hardware.inventory import Inventory, Reading
from linkgauge.model.hardware.machine import Machine
from linkgauge.model.hardware.network import CounterRise, joined_rises
from linkgauge.model.kernel_log import KernelLog
from linkgauge.model.notes import Note, Profiled
from linkgauge.model.operations.overlap import ALL
from linkgauge.model.operations.workload import WorkDone
from linkgauge.model.printable import BriefRepr
from linkgauge.model.ranks import LostRank
from linkgauge.model.recorded import PathKind
from linkgauge.model.settings import Budget, Settings
from linkgauge.model.stats.modes import Mode
from linkgauge.model.stats.summary import Interval, Summary
from linkgauge.model.transfer import Cell, Report, SampledPairs
from linkgauge.model.units import Better

from .expected import Expected as Expected  # noqa: PLC0414  # readers of a cell find it here
from .soak import Soak
from .tool_run import ToolRun

Status = Literal["pass", "fail", "skip", "error", "timeout"]
Stopped = Literal["precision", "samples", "max-time", "noise", "budget"]
Verdict = Literal["ok", "perhaps low", "degraded", "low", "high", "waived", "not judged"]
"""Whether a figure is as expected. `degraded`: it is as expected of links that run below their
best. `perhaps low`: it may be low, which is a warning. `waived`: it is low, and accepted."""
RunVerdict = Literal["ok", "warn", "low", "fail", "not judged"]
"""The verdict on a run: that of its worst figure or finding."""
NotJudged = Literal["no-limit", "path", "bound", "start", "shared", "assumed", "run", "no-figure"]
"""Why a figure is not judged: no limit is known; the path of its bytes is unknown; only a bound is
known, and the figure is well below it; starting takes about as long as moving so few bytes; others
used its links; nobody states what the simulation assumes; the run is not judged, as under a
profiler; or there is no figure, or no bytes."""
Definition = Literal["sustained", "serial", "span"]
"""How a total is computed. `sustained`: the sum of the rates while all transfers run. `serial`:
bytes ÷ span, as they never all ran together. `span`: bytes ÷ span as in nvbandwidth."""

SCHEMA: Literal["linkgauge.run/3"] = "linkgauge.run/3"
_HIDDEN, _BEST = Report.HIDDEN, Report.BEST  # Python 3.11 takes long to find members


class TransferFigure(msgspec.Struct, frozen=True, gc=False):
    """The figure of one of several concurrent transfers.

    transfer: The index of the transfer among the cell's transfers, from 0.
    bytes: Bytes that one loop moves, counted as for the headline figure.
    samples: Samples in the result's unit, but in bytes/s for a load on a measured latency, and in
      seconds if the result is a share of hidden time.
    summary: Statistics of the samples; null without samples.
    expected: The rate to achieve, in bytes/s; null if unknown or if others share its path."""

    transfer: int
    bytes: int
    samples: Annotated[tuple[float, ...], joining.in_series]
    summary: Summary | None
    expected: float | None = None


class RankTimes(msgspec.Struct, frozen=True, gc=False, rename={"samples": "seconds"}):
    """The times of one rank in a collective. The last rank to arrive does not wait, so it is
    fastest.

    rank: The rank's number, from 0.
    seconds: Seconds that the rank spends in each collective (in code: `samples`).
    summary: Statistics of the seconds; null if there are none."""

    rank: int
    samples: Annotated[tuple[float, ...], joining.in_series]
    summary: Summary | None = None


class Placement(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """Where one buffer actually lies. Files leave out null values, because runs hold many buffers.

    memory: The memory's name, such as `host:0/huge`.
    bytes: Size of the buffer in bytes.
    node: The NUMA node that the buffer's pages lie on; null if unknown, or on a device.
    locked: Whether the buffer's pages are locked in memory; null if locking is not required.
    huge_bytes: Bytes of the buffer that lie in huge pages; null if unknown.
    nodes: Pages on each node, in a sample of at most 1024; null without a placement policy."""

    memory: shareable.MemoryName
    bytes: int
    node: int | None = None
    locked: bool | None = None
    huge_bytes: int | None = None
    nodes: dict[int, int] | None = None


class CellResult(Cell, frozen=True, gc=False):
    """The result of one cell. `warnings` exist only in files. Reading turns them into `notes`.

    status: How the measurement of the cell ended.
    reason: Why the cell did not pass, as a sentence; null if it passed.
    warnings: The notes, as sentences.
    bytes: Bytes of one loop that the headline figure counts; null if the cell was not measured.
    loops: How many loops one sample takes; null if the cell was not measured.
    stopped: Why sampling ended (`noise`: more samples would not help); null without samples.
    verified: Whether the bytes that arrived are right; null if the bytes were not compared.
    locked: Whether all host buffers that must be locked are locked; null without such buffers.
    placement: Where each buffer lies.
    samples: Every sample, in the order of measuring, in the result's unit.
    repetitions: For each repetition, the number of samples after each start signal.
    seconds: Total time of sampling in seconds; null if it was not measured.
    summary: Statistics of the samples; null without samples.
    interval: How `ci95` of the summary was computed; null if no similar cell was repeated.
    modes: The two groups that the samples fall into, the larger first; empty for one group.
    parts: The separate figures of concurrent transfers; empty for a single transfer.
    expected: The performance that the hardware should reach; null if unknown or not judged yet.
    verdict: Whether the figure is as expected; `degraded` if so, but links run below their best.
    not_judged: Why the cell is not judged; null if judged or skipped, and in older files.
    readings: What the libraries of the accelerators reported during the measurement.
    definition: How a total is computed: sum of rates (`sustained`) or bytes ÷ span; null if none.
    kind: Why the cell did not pass, as a code for programs; null if it passed.
    notes: Other remarks, as values.
    phase: The phase in which the cell failed or was skipped; null if it passed, or if unknown.
    counters: Events of its host threads; null if they were not counted.
    cpu_seconds: CPU seconds of all threads of the measuring process; null if simulated or unknown.
    wrong: The number of wrong elements of a collective; null if unchecked or for other operations.
    iterations: The times of each rank of a collective.
    load: The load of other processes during the measurement; null if simulated, or if unknown.
    work: The further results of an AI workload; null for other operations.
    lost: The number of the rank whose loss left the cell without figures; null if none did.
    round: A number that cells measured at the same time share; null if it was measured alone.
    peers: The median of comparable cells, if this cell's figure is far from it; else null.
    rises: How much network counters rose during the measurement; empty without a network."""

    status: Status
    reason: shareable.Reason | None = None
    warnings: tuple[shareable.FreeText, ...] = ()
    bytes: int | None = None
    loops: int | None = None
    stopped: Stopped | None = None
    verified: Annotated[bool | None, joining.all_known] = None
    locked: Annotated[bool | None, joining.all_known] = None
    placement: Annotated[tuple[Placement, ...], joining.each_once] = ()
    samples: Annotated[tuple[float, ...], joining.in_series] = ()
    repetitions: Annotated[tuple[tuple[int, ...], ...], joining.in_series] = ()
    seconds: Annotated[float | None, joining.added_known] = None
    summary: Summary | None = None
    interval: Interval | None = None
    modes: tuple[Mode, ...] = ()
    parts: Annotated[tuple[TransferFigure, ...], joining.each_joined] = ()
    expected: Expected | None = None
    verdict: Verdict = "not judged"
    not_judged: NotJudged | None = None
    readings: Annotated[tuple[Reading, ...], joining.in_series] = ()
    definition: Definition | None = None
    kind: OutcomeKind | None = None
    notes: Annotated[tuple[Note, ...], joining.each_once] = ()
    phase: Phase | None = None
    counters: Annotated[Counters | None, total] = None
    cpu_seconds: Annotated[float | None, joining.added] = None
    wrong: Annotated[int | None, joining.most_known] = None
    iterations: Annotated[tuple[RankTimes, ...], joining.each_joined] = ()
    load: Annotated[Load | None, joined_loads] = None
    work: WorkDone | None = None
    lost: int | None = None
    round: int | None = None
    peers: float | None = None
    rises: Annotated[tuple[CounterRise, ...], joined_rises] = ()

    @property
    def is_as_expected(self) -> bool:
        return self.verdict in ("ok", "degraded")

    @property
    def reached(self) -> float | None:
        """The headline figure ÷ `at_best`, inverse for times; None if not judged or not passed."""
        if self.verdict == "not judged" or self.status != "pass":
            return None
        return self.share(self.at_best, self.headline)

    @property
    def achieved(self) -> float | None:
        """The median ÷ the achievable figure, or for times the inverse; None if unknown."""
        return None if self.expected is None else self.share(self.expected.achievable)

    @property
    def at_best(self) -> float | None:
        """The figure to expect if all links run at their best rate; None if unknown."""
        return None if self.expected is None else self.expected.nominal or self.expected.figure

    @property
    def is_as_peers(self) -> bool:
        """Whether the cell is ok, but was only compared with similar cells of the run."""
        return self.verdict == "ok" and self.expected is not None and bool(self.expected.peers)

    @property
    def series(self) -> tuple[TransferFigure | RankTimes, ...]:
        return (*self.parts, *self.iterations)

    def with_series(self, change: Callable[[Any], Any]) -> CellResult:
        parts, iterations = (tuple(map(change, own)) for own in (self.parts, self.iterations))
        return replace(self, parts=parts, iterations=iterations) if self.series else self

    @property
    def samples_id(self) -> int:
        """The `id()` of the tuple of samples. Cells of a simulated machine may share one."""
        return id(self.samples)

    @property
    def cpus(self) -> float | None:
        if self.cpu_seconds is None or not self.seconds:
            return None
        return self.cpu_seconds / self.seconds

    @property
    def headline(self) -> float | None:
        """The median sample; for BEST the best one, for HIDDEN at most 1. None without samples."""
        if self.summary is None:
            return None
        if self.report is _HIDDEN:
            return min(ALL, self.summary.median)
        return self.summary.max if self.report is _BEST else self.summary.median

    def share(self, reference: float | None, figure: float | None = None) -> float | None:
        """Returns `figure` (None: the median) ÷ `reference`, or for latencies the inverse."""
        figure = self.summary.median if figure is None and self.summary is not None else figure
        if figure is None or not reference:
            return None
        if self.report.is_latency:
            return reference / figure if figure else None
        return figure / reference


class BenchmarkTable(msgspec.Struct, frozen=True, kw_only=True):
    """The properties of a table: the cells of one benchmark on one backend at one size.

    benchmark: The benchmark's name.
    title: What the benchmark measures, as text for people.
    backend: The backend that measured it.
    size: The base size of a transfer in bytes; 1 or 0 if its cells have several sizes or none.
    unit: The unit of all figures of its cells: `B/s`, `s` or another one.
    better: Whether higher or lower figures are better.
    parts: The names of additional matrices: one for each of the cells' concurrent transfers.
    sweep: Whether the columns are settings, not memories. A sum over columns then means nothing.
    reason: Why there are no cells; null if there are cells.
    simulated: Whether the table was measured on a simulated machine.
    sampled: The random sample of pairs that has cells; null if all pairs have cells.
    plugins: Packages, with versions, that add the benchmark or backend; left out if built in."""

    benchmark: shareable.OwnName
    title: shareable.Title
    backend: shareable.OwnName
    size: int
    unit: shareable.Title
    better: Better
    parts: tuple[shareable.Title, ...] = ()
    sweep: bool = False
    reason: shareable.Reason | None = None
    simulated: bool = False
    sampled: SampledPairs | None = None
    plugins: tuple[shareable.FreeText, ...] | msgspec.UnsetType = msgspec.UNSET


class PlannedCell(Cell, frozen=True, gc=False):
    """A cell to be measured.

    reason: Why it is skipped; null if it is measured.
    round: Cells of a table with the same number are measured at the same time; null if alone.
    number: The number of the cell in the plan.
    at_once: Whether the whole round fails if one of its cells cannot be measured."""

    reason: shareable.Reason | None = None
    round: int | None = None
    number: int = 0
    at_once: bool = False


class PlannedTable(BenchmarkTable, frozen=True, kw_only=True):
    """A table of cells to be measured.

    cells: The cells."""

    cells: tuple[PlannedCell, ...] = ()


class Result(BenchmarkTable, frozen=True, kw_only=True):
    """A table of measured cells.

    status: The worst status of the cells: error, timeout, fail, pass; `skip` if all are skipped.
    cells: The cells.
    texts: Texts that several cells share, only in files: reading copies them to the cells.
    levels: The levels of a memory hierarchy, from the curves of latency over size.
    average: The mean bus bandwidth of its cells, in bytes/s; null if no cell is of a collective."""

    status: Status
    cells: tuple[CellResult, ...]
    texts: tuple[shareable.FreeText, ...] = ()
    levels: tuple[Levels, ...] = ()
    average: float | None = None

    def with_cells(self, change: Callable[[CellResult], CellResult]) -> Result:
        cells = tuple(map(change, self.cells))
        status = worst(map(attrgetter("status"), cells)) if cells else self.status
        return replace(self, cells=cells, status=status)


class Run(BriefRepr, msgspec.Struct, frozen=True, kw_only=True):
    """A whole run, as kept in `run.json`.

    schema: The kind and version of the document.
    id: The run's name: the name of its folder, or its start time if it is not kept.
    label: The label that the user gave.
    simulated: Whether it was measured on a simulated machine.
    command: The command line, argument by argument.
    started: When it began (ISO 8601, UTC).
    resumed: When it was resumed (ISO 8601, UTC).
    finished: When it ended (ISO 8601, UTC); null if it was interrupted.
    machine: The machine that was measured.
    after: The inventory of the machine at the run's end; null if the run did not reach its end.
    kernel_log: The kernel's log during the run; null if the log was not followed.
    settings: The settings of the measurement.
    budget: The time that the run might take; left out without such a limit.
    results: The results that were measured.
    lines: Hockney's lines of benchmarks that were measured at several sizes.
    profiler_files: The names of a profiler's files in the run's folder.
    lost: The rank whose loss ended the run; null for every other run.
    soak: The results over time of a soak (a repeated run), whose cells keep only some samples.
    earlier: The comparison with earlier runs of the machine; left out if there are no earlier runs.
    between_runs: The relative standard deviation between earlier runs, by kind of path, if known.
    tool: The other program that measured the run; left out if linkgauge measured it.
    waivers: The findings and low figures that the user accepts; left out if there are none.
    ranges: `anew` if the file's ranges followed an older rule and were computed again."""

    schema: Literal["linkgauge.run/3"] = SCHEMA
    id: shareable.OwnName
    label: shareable.Label
    simulated: bool = False
    command: tuple[shareable.Argument, ...]
    started: shareable.Time
    resumed: tuple[shareable.Time, ...] = ()
    finished: shareable.Time | None
    machine: Machine
    after: Inventory | None = None
    kernel_log: KernelLog | None = None
    settings: Settings
    budget: Budget | msgspec.UnsetType = msgspec.UNSET
    results: tuple[Result, ...]
    lines: tuple[SizeLine, ...] = ()
    profiler_files: tuple[shareable.FileName, ...] = ()
    lost: LostRank | None = None
    soak: Soak | None = None
    earlier: Earlier | msgspec.UnsetType = msgspec.UNSET
    between_runs: dict[PathKind, float] | msgspec.UnsetType = msgspec.UNSET
    tool: ToolRun | msgspec.UnsetType = msgspec.UNSET
    waivers: tuple[Waiver, ...] | msgspec.UnsetType = msgspec.UNSET
    ranges: Literal["anew"] | msgspec.UnsetType = msgspec.UNSET

    def with_cells(self, change: Callable[[CellResult], CellResult]) -> Run:
        return replace(self, results=tuple(one.with_cells(change) for one in self.results))

    @property
    def is_profiled(self) -> bool:
        """Whether a profiler ran, so that the figures are neither judged nor compared."""
        return any(isinstance(n, Profiled) for r in self.results for c in r.cells for n in c.notes)


_WORST_FIRST: tuple[Status, ...] = ("error", "timeout", "fail", "pass")


def worst(statuses: Iterable[Status]) -> Status:
    present = set(statuses)
    return next(filter(present.__contains__, _WORST_FIRST), "skip")


def exit_code(run: Run) -> int:
    """Returns 130 for an interrupted run, else the first that applies: 3 (an error, a timeout or a
    lost rank), 1 (a failed cell, or a device too hot), 0 (a passed cell), 4 (nothing measured)."""
    if run.finished is None:
        return 130
    statuses = {cell.status for result in run.results for cell in result.cells}
    if run.lost is not None or statuses & {"error", "timeout"}:
        return 3
    if "fail" in statuses or (run.soak is not None and run.soak.stopped == "temperature"):
        return 1
    return 0 if "pass" in statuses else 4

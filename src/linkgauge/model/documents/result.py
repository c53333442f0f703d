"""The output of a run, as `--json` writes it; model.documents.stored is its form in files. Absent
is null, never 0; warnings are fields; figures are in the result's unit (SI base units)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

import msgspec

from linkgauge.model.counters import Counters
from linkgauge.model.curves import Levels, SizeLine
from linkgauge.model.earlier import Earlier
from linkgauge.model.errors import OutcomeKind, Phase
from linkgauge.model.hardware.inventory import Inventory, Reading
from linkgauge.model.hardware.machine import Machine
from linkgauge.model.kernel_log import KernelLog
from linkgauge.model.load import Load
from linkgauge.model.notes import Note, Profiled
from linkgauge.model.operations.overlap import ALL
from linkgauge.model.operations.workload import WorkDone
from linkgauge.model.pairs import DrawnPairs
from linkgauge.model.ranks import LostRank
from linkgauge.model.settings import Settings
from linkgauge.model.stats.modes import Mode
from linkgauge.model.stats.summary import Summary
from linkgauge.model.transfer import Cell, Report
from linkgauge.model.units import Better

from .soak import Soak
from .tool_run import ToolRun

Status = Literal["pass", "fail", "skip", "error", "timeout"]
Stopped = Literal["precision", "samples", "max-time", "noise"]
Verdict = Literal["ok", "low", "high", "unknown"]
NotJudged = Literal["no-limit", "path", "bound", "start", "shared", "unsure", "run", "no-figure"]
"""The reason why a figure is not judged: nothing is known to limit it; the path of its bytes is
unknown; only a bound is known, and the figure is well below it; starting takes about as long as
moving so few bytes; others used its links; its median is low, but not all of its interval; nothing
of its run is judged, as under a profiler; it has no figure, or no bytes."""
Definition = Literal["sustained", "serial", "span"]
"""How a total is computed: the sum of the rates while all transfers run; bytes over the span
because they never all ran together; or bytes over the span as nvbandwidth times it."""

SCHEMA: Literal["linkgauge.run/2"] = "linkgauge.run/2"


class TransferFigure(msgspec.Struct, frozen=True, gc=False):
    """The separate figure of one concurrent transfer. In a cell that reports hidden time, it is the
    time of a loop in seconds, of the kernel alone or of the copies alone.

    transfer: The place of the transfer among the cell's transfers, from 0.
    bytes: Bytes that one loop moves, counted as the headline does.
    samples: Its samples, in the order of measuring, in the result's unit; in bytes/s if it runs
        beside a latency, in seconds if the cell reports hidden time.
    summary: Statistics of the samples; null without samples.
    expected: The rate that it should achieve, in bytes/s; null if it is unknown, or if others share
        the path."""

    transfer: int
    bytes: int
    samples: tuple[float, ...]
    summary: Summary | None
    expected: float | None = None


class RankTimes(msgspec.Struct, frozen=True, gc=False):
    """The times of a rank's part of each of several collectives, one after another. A rank that
    comes late waits less for the others than they wait for it.

    rank: The rank's number, from 0.
    seconds: Seconds of its part of each collective.
    summary: Statistics of these; null without any."""

    rank: int
    seconds: tuple[float, ...]
    summary: Summary | None = None


class Placement(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """The actual placement of one buffer. Files leave out null values, because runs hold hundreds
    of thousands of placements.

    memory: The memory, in the notation.
    bytes: Size of the buffer in bytes.
    node: The host node that its pages lie on; null if unknown, or on a device.
    locked: Whether its pages are locked in memory; null if they need not be.
    huge_bytes: Bytes of it that lie in huge pages; null if unknown.
    nodes: For memory placed by a policy, how many of at most 1024 of its pages lie on each node;
        null for other memory."""

    memory: str
    bytes: int
    node: int | None = None
    locked: bool | None = None
    huge_bytes: int | None = None
    nodes: dict[int, int] | None = None


class Expected(msgspec.Struct, frozen=True, gc=False):
    """The performance that the hardware should reach, in the result's unit.

    theoretical: The limit that cannot be exceeded (for the time of a collective, by no ring of
        these ranks); null if unknown.
    achievable: The figure that should be reached; null if unknown.
    because: The arithmetic; empty if `text` refers to it.
    text: The index of the arithmetic in the `texts` of the result, from 0; null if `because` has
        it.
    measured: Whether the achievable figure comes from this run's own measurements.
    nominal: The figure to expect if every link of the path ran at its best: the achievable one if
        known, else the theoretical one; null if it equals the expected figure.
    peers: The number of equal cells of this run whose median is used as the achievable figure; null
        if the expectation comes from elsewhere."""

    theoretical: float | None = None
    achievable: float | None = None
    because: str = ""
    text: int | None = None
    measured: bool = False
    nominal: float | None = None
    peers: int | None = None

    @property
    def figure(self) -> float | None:
        """The achievable figure, else the theoretical one; None if nothing is expected."""
        return self.achievable or self.theoretical


class Interval(msgspec.Struct, frozen=True, gc=False):
    """How a cell's `ci95` was formed. From `visits`: from the variation between medians of visits,
    pooled over alike cells; another run's figure falls into it as often as `coverage` says. From
    `samples` alone (if their number was fixed): it describes how well the samples determine their
    own median, but no other runs.

    basis: The data that it was formed from.
    coverage: The share of other runs' figures that fall into it, as measured for such cells; null
        if it was not measured.
    degrees: Degrees of freedom; null for an interval from samples.
    alike: The number of cells that were pooled; null for an interval from samples."""

    basis: Literal["visits", "samples"]
    coverage: float | None = None
    degrees: int | None = None
    alike: int | None = None


class CellResult(Cell, frozen=True, gc=False):
    """A cell's result. Warnings exist only in files; once a file is read, the cell has notes
    instead.

    status: How it ended.
    reason: Why it did not pass, for people; null if it passed.
    warnings: The notes, as sentences.
    bytes: Bytes that one loop of the headline figure moves; null if it was not measured.
    loops: Loops of a sample; null if it was not measured.
    stopped: Why sampling ended: the precision was reached, the number of samples was fixed, the
        time was over, or more samples would not have made it more precise; null without samples.
    verified: Whether the bytes that arrived were compared, and right; null if they were not
        compared.
    locked: Whether all host buffers that should be locked in memory are; null if none should be.
    placement: Where each buffer lies.
    samples: Every sample, in the order of measuring, in the result's unit.
    visits: For each visit, the numbers of samples behind each of its gates.
    seconds: Total time of sampling in seconds; null if it was not measured.
    summary: Statistics of the samples; null without samples.
    interval: How the interval of the summary was formed; null without samples.
    modes: The two groups that the samples fall into, the larger first; empty if they form one.
    parts: The separate figures of concurrent transfers; empty for a single one.
    expected: The figure that the hardware should reach; null if none is known, or if the cell is
        not judged yet.
    verdict: Whether it is as expected; `unknown` if it is not judged.
    not_judged: Why it is not judged; null if it is judged or was skipped, and in files of earlier
        versions.
    readings: What the libraries of its accelerators reported while it was measured.
    definition: How a total is computed: `sustained` is the sum of the rates while all transfers
        run, `serial` the bytes over the span because they never all ran together, `span` the bytes
        over the span as nvbandwidth times it; null if the figure is no total, or comes from an
        earlier version, which divided by the span.
    kind: Why it did not pass, for programs; null if it passed.
    notes: Other remarks, as values.
    phase: The phase in which it ended without passing; null if it passed, or the phase is unknown.
    counters: Events of its host threads; null if they were not counted.
    cpu_seconds: CPU time in seconds, of all threads, that the measuring process used in `seconds`;
        null if it is simulated, or unknown.
    wrong: The number of wrong elements in a collective's result; null if unchecked, and for other
        operations.
    iterations: The times of each rank of a collective.
    load: The load of other processes meanwhile; null if it is simulated, or unknown.
    work: The further results of an AI workload; null for other operations.
    lost: The number of the rank whose loss cost the cell its figures; null if none did.
    round: A number that is equal for cells of a result that were measured at the same time; null if
        the cell was measured alone, and in files of earlier versions.
    peers: The median of the figures that should equal the cell's, if the cell is far from it; null
        if it is near, or if there are no such figures."""

    status: Status
    reason: str | None = None
    warnings: tuple[str, ...] = ()
    bytes: int | None = None
    loops: int | None = None
    stopped: Stopped | None = None
    verified: bool | None = None
    locked: bool | None = None
    placement: tuple[Placement, ...] = ()
    samples: tuple[float, ...] = ()
    visits: tuple[tuple[int, ...], ...] = ()
    seconds: float | None = None
    summary: Summary | None = None
    interval: Interval | None = None
    modes: tuple[Mode, ...] = ()
    parts: tuple[TransferFigure, ...] = ()
    expected: Expected | None = None
    verdict: Verdict = "unknown"
    not_judged: NotJudged | None = None
    readings: tuple[Reading, ...] = ()
    definition: Definition | None = None
    kind: OutcomeKind | None = None
    notes: tuple[Note, ...] = ()
    phase: Phase | None = None
    counters: Counters | None = None
    cpu_seconds: float | None = None
    wrong: int | None = None
    iterations: tuple[RankTimes, ...] = ()
    load: Load | None = None
    work: WorkDone | None = None
    lost: int | None = None
    round: int | None = None
    peers: float | None = None

    @property
    def is_as_peers(self) -> bool:
        """Whether it is ok only because equal cells of its run reach no more."""
        return self.verdict == "ok" and self.expected is not None and bool(self.expected.peers)

    @property
    def cpus(self) -> float | None:
        """The number of CPUs that the measuring process kept busy while samples were taken; None if
        unknown."""
        if self.cpu_seconds is None or not self.seconds:
            return None
        return self.cpu_seconds / self.seconds

    @property
    def headline(self) -> float | None:
        """The cell's figure: the median of its samples, or the best one if it reports that. A share
        of hidden time is at most 1."""
        if self.summary is None:
            return None
        if self.report is Report.HIDDEN:
            return min(ALL, self.summary.median)
        return self.summary.max if self.report is Report.BEST else self.summary.median

    def share(self, reference: float | None, figure: float | None = None) -> float | None:
        """The share of a reference that the cell's median, or this `figure`, reaches; for times,
        the inverse."""
        figure = self.summary.median if figure is None and self.summary is not None else figure
        if figure is None or not reference:
            return None
        if self.report.is_latency:
            return reference / figure if figure else None
        return figure / reference


class BenchmarkTable(msgspec.Struct, frozen=True, kw_only=True):
    """The common properties of cells: a benchmark on one backend at one size.

    benchmark: The benchmark's name.
    title: What it measures, for people.
    backend: The backend that measured it.
    size: Size in bytes; each transfer moves a multiple of it. 1 or 0 if cells have sizes of their
        own, or none.
    unit: The unit of all figures of its cells: `B/s`, `s` and so on.
    better: Which figures are better.
    parts: Names of the matrices of single transfers.
    sweep: Whether its columns are settings, not memories: their sum then means nothing.
    reason: Why there are no cells; null if there are.
    simulated: Whether it was measured on a simulated machine.
    drawn: Which of its pairs were drawn; null if all have cells.
    plugins: The packages, with their versions, that offer the benchmark and the backend; left out
        if linkgauge itself does."""

    benchmark: str
    title: str
    backend: str
    size: int
    unit: str
    better: Better
    parts: tuple[str, ...] = ()
    sweep: bool = False
    reason: str | None = None
    simulated: bool = False
    drawn: DrawnPairs | None = None
    plugins: tuple[str, ...] | msgspec.UnsetType = msgspec.UNSET


class PlannedCell(Cell, frozen=True, gc=False):
    """A cell to be measured. A cell with a `reason` is skipped. Cells of a table with the same
    `round` are measured at the same time; if `at_once`, all of them or none. `number` counts the
    plan's cells."""

    reason: str | None = None
    round: int | None = None
    number: int = 0
    at_once: bool = False


class PlannedTable(BenchmarkTable, frozen=True, kw_only=True):
    """A table of cells to be measured."""

    cells: tuple[PlannedCell, ...] = ()


class Result(BenchmarkTable, frozen=True, kw_only=True):
    """A table of measured cells.

    status: The worst of its cells, in the order error, timeout, fail, pass; `skip` if all are.
    cells: The cells.
    texts: Texts that its cells share, only in files: once read, each cell has its own.
    levels: The levels of a memory hierarchy that its curves of latency over size show.
    average: The mean of the bus bandwidths of its cells, in bytes/s; null if they are no
        collectives, or have no figures."""

    status: Status
    cells: tuple[CellResult, ...]
    texts: tuple[str, ...] = ()
    levels: tuple[Levels, ...] = ()
    average: float | None = None


class Run(msgspec.Struct, frozen=True, kw_only=True):
    """A whole run, as kept in `run.json`.

    schema: The kind of document, and its version.
    id: The run's name: that of its folder, or its start if it is not kept.
    label: The label that it was given.
    simulated: Whether it was measured on a simulated machine.
    command: The command line, argument by argument.
    started: When it began (ISO 8601, UTC).
    resumed: When it was resumed (ISO 8601, UTC).
    finished: When it ended (ISO 8601, UTC); null if it was interrupted.
    machine: The machine that was measured.
    after: The inventory of the machine at the run's end; null if the run did not end.
    kernel_log: The kernel's log during the run; null if the log was not followed.
    settings: How it was measured.
    results: The results that were measured.
    lines: Hockney's lines of benchmarks that were measured at several sizes.
    profiler_files: The names of a profiler's files in the run's folder.
    lost: The rank whose loss ended the run; null for every other run.
    soak: The course over time of a run that repeated its benchmarks, else null; the cells of
        such a run have the samples of some of their visits.
    earlier: The comparison with earlier runs of the machine; left out if there are none.
    tool: The other program that measured the run; left out if linkgauge did.
    """

    schema: Literal["linkgauge.run/2"] = SCHEMA
    id: str
    label: str
    simulated: bool = False
    command: tuple[str, ...]
    started: str
    resumed: tuple[str, ...] = ()
    finished: str | None
    machine: Machine
    after: Inventory | None = None
    kernel_log: KernelLog | None = None
    settings: Settings
    results: tuple[Result, ...]
    lines: tuple[SizeLine, ...] = ()
    profiler_files: tuple[str, ...] = ()
    lost: LostRank | None = None
    soak: Soak | None = None
    earlier: Earlier | msgspec.UnsetType = msgspec.UNSET
    tool: ToolRun | msgspec.UnsetType = msgspec.UNSET

    @property
    def is_profiled(self) -> bool:
        """Whether it was measured under a profiler, which need not be `settings.profiler`: its
        figures are then neither judged nor compared."""
        notes = (note for result in self.results for cell in result.cells for note in cell.notes)
        return any(isinstance(note, Profiled) for note in notes)


_WORST_FIRST: tuple[Status, ...] = ("error", "timeout", "fail", "pass")


def worst(statuses: Iterable[Status]) -> Status:
    """The worst of these statuses, in the order error, timeout, fail, pass; `skip` if all are."""
    present = set(statuses)
    return next((status for status in _WORST_FIRST if status in present), "skip")


def exit_code(run: Run) -> int:
    """The exit code by statuses alone: 0 if all passed, 1 for a failure or a device too hot, 3 if
    an error, a timeout or a lost rank cost results, 4 if nothing was measured; if several apply,
    the first of 3, 1, 4. 130 for an interrupted run, which has no end."""
    if run.finished is None:
        return 130
    statuses = {cell.status for result in run.results for cell in result.cells}
    if run.lost is not None or statuses & {"error", "timeout"}:
        return 3
    if "fail" in statuses or (run.soak is not None and run.soak.stopped == "temperature"):
        return 1
    return 0 if "pass" in statuses else 4

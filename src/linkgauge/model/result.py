"""The output of a run: `run.json`. docs/run.schema.json is generated from these types.

Absent is null, never 0; warnings are fields; figures are in the result's unit (SI base units).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, NamedTuple

import msgspec

from .counters import Counters
from .errors import OutcomeKind, Phase
from .inventory import Inventory, Reading
from .kernel_log import KernelLog
from .load import Load
from .machine import Machine
from .modes import Mode
from .notes import Note, Profiled
from .overlap import ALL
from .ranks import LostRank
from .settings import Settings
from .soak import Soak
from .statistics import Summary
from .transfer import Cell, Drawn, Place, Report
from .units import Better
from .workload import WorkDone

Status = Literal["pass", "fail", "skip", "error", "timeout"]
Stopped = Literal["precision", "samples", "max-time", "noise"]
Verdict = Literal["ok", "low", "high", "unknown"]
Definition = Literal["sustained", "serial", "span"]
"""How a total is computed: the sum of the rates while all transfers run; bytes over the span
because they never all ran together; or bytes over the span as nvbandwidth times it."""

SCHEMA: Literal["linkgauge.run/1"] = "linkgauge.run/1"


class CellKey(NamedTuple):
    """Identifies a cell in a plan, in a journal and between runs. `repeat` counts the identical
    sheets of the plan (a test that is measured several times), from 0."""

    benchmark: str
    backend: str
    size: int
    place: Place
    repeat: int = 0


class Part(msgspec.Struct, frozen=True, gc=False):
    """The separate figure of one concurrent transfer; `transfer` indexes the cell's transfers. Of a
    cell that reports what is hidden, it is the time of a loop in seconds, without the kernel or
    without the copies.

    `bytes` is what one loop moves, counted as the headline does. `expected` is what it should
    achieve, in bytes/s, where that is known and the others take nothing of it.
    """

    transfer: int
    bytes: int
    samples: tuple[float, ...]
    summary: Summary | None
    expected: float | None = None


class RankTimes(msgspec.Struct, frozen=True, gc=False):
    """The seconds that a rank's part of each of several collectives took, one after another: a rank
    that comes late waits less for the others than they for it."""

    rank: int
    seconds: tuple[float, ...]
    summary: Summary | None = None


class Placement(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """The actual placement of one buffer: the host node its pages lie on (null: unknown or a
    device), whether they are locked, how many of its bytes lie in huge pages, and of memory placed
    by a policy, how many of at most 1024 pages lie on each node. In files, null values are left
    out: runs hold hundreds of thousands of these."""

    memory: str
    bytes: int
    node: int | None = None
    locked: bool | None = None
    huge_bytes: int | None = None
    nodes: dict[int, int] | None = None


class Expected(msgspec.Struct, frozen=True, gc=False):
    """What the hardware should do, in the result's unit, and the arithmetic: `because`, or its
    index (from 0) in the `texts` of the result, since many cells share it. `measured`: the
    achievable figure comes from this run's own measurements. `nominal` is what would be expected if
    every link of the path ran at its best: the achievable figure where one is known, else the
    theoretical one; null where that is what is expected anyway."""

    theoretical: float | None = None
    achievable: float | None = None
    because: str = ""
    text: int | None = None
    measured: bool = False
    nominal: float | None = None

    @property
    def figure(self) -> float | None:
        """What should be reached, else what cannot be exceeded; None where nothing is expected."""
        return self.achievable or self.theoretical


class Interval(msgspec.Struct, frozen=True, gc=False):
    """How a cell's `ci95` was formed. From `visits`: from the variation of the medians of visits,
    pooled over `alike` cells, with `degrees` degrees of freedom; another run's figure falls into it
    with the `coverage` that was shown for such cells. From `samples` alone (their number was
    fixed): it describes how well the samples determine their own median, and not other runs."""

    basis: Literal["visits", "samples"]
    coverage: float | None = None
    degrees: int | None = None
    alike: int | None = None


class CellResult(Cell, frozen=True, gc=False):
    """One cell. `bytes` is what one loop of the headline figure moves; `locked` is false if a host
    buffer that should be locked in memory is not (null: none should be). `readings` are of its
    accelerators, taken while it was measured. `visits` are the numbers of samples behind each gate
    of each visit, `seconds` the total sampling time; `modes` are the two groups that the samples
    fall into, the larger first, if there are two. `definition` says how a total is computed (null:
    the figure is not a total, or comes from an earlier version, which divided by the span). Why it
    did not pass is in `reason` for people and in `kind`, with the `phase` that it was in, for
    programs; other remarks are in `warnings` and `notes`. Warnings exist only in files: once read,
    a cell has its notes. `counters` are of its host threads. `cpu_seconds` are the CPU time, of all
    threads, that the measuring process used in its `seconds` (null: simulated, or unknown). `wrong`
    is the number of wrong elements that a collective left (null: of anything else, or unchecked),
    and `iterations` are the times of its ranks. `load` is what else the machine did meanwhile
    (null: simulated, or unknown), `work` what an AI workload shows beside its samples. `lost` is
    the number of the rank whose loss cost the cell its figures. `peers` is the median of the
    figures that should be equal to the cell's, where that is far from them (null: it is not, or
    there are none). Cells of a result with the same
    `round` were measured at the same time (null: alone, or an earlier version)."""

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
    parts: tuple[Part, ...] = ()
    expected: Expected | None = None
    verdict: Verdict = "unknown"
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
    def cpus(self) -> float | None:
        """How many CPUs the measuring process kept busy while the samples were taken."""
        if self.cpu_seconds is None or not self.seconds:
            return None
        return self.cpu_seconds / self.seconds

    @property
    def headline(self) -> float | None:
        """The figure of the cell: the median of its samples, or the best where that is reported. No
        more than all of a time is hidden."""
        if self.summary is None:
            return None
        if self.report is Report.HIDDEN:
            return min(ALL, self.summary.median)
        return self.summary.max if self.report is Report.BEST else self.summary.median


class Sheet(msgspec.Struct, frozen=True, kw_only=True):
    """A benchmark on one backend at one size: what its cells have in common.

    `parts` names the matrices of single transfers; `reason` says why there are no cells. The
    columns of a `sweep` are settings, not memories: their sum means nothing. Of a benchmark of
    pairs, only those that were `drawn` have cells (null: all). `simulated` results are marked as
    such wherever they are shown.
    """

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
    drawn: Drawn | None = None


class PlannedCell(Cell, frozen=True, gc=False):
    """A cell to be measured. With `reason` it is skipped; cells of a sheet with the same `round`
    are measured at the same time, `at_once` or not at all. `number` counts the plan's cells."""

    reason: str | None = None
    round: int | None = None
    number: int = 0
    at_once: bool = False


class PlannedSheet(Sheet, frozen=True, kw_only=True):
    """A sheet with the cells to be measured."""

    cells: tuple[PlannedCell, ...] = ()


class Level(msgspec.Struct, frozen=True):
    """A plateau of a latency over sizes: its `number` from 1 on, the latency of an access in
    `seconds`, and the sizes in bytes from which (`least`) and up to which (`most`) it was found;
    `most` is null of the last level."""

    number: int
    seconds: float
    least: int
    most: int | None = None


class Levels(msgspec.Struct, frozen=True):
    """The levels that one `row` of a result shows, the fastest first."""

    row: str
    levels: tuple[Level, ...]


class Result(Sheet, frozen=True, kw_only=True):
    """A sheet with what was measured; its status is the worst of its cells. `texts` are those that
    its cells share, only in files: once read, each cell has its own. `levels` are those of a memory
    hierarchy that its curves of latency over size show. The `average` is that of the bus bandwidths
    of its cells, in bytes/s (null: they are no collectives, or have no figures)."""

    status: Status
    cells: tuple[CellResult, ...]
    texts: tuple[str, ...] = ()
    levels: tuple[Levels, ...] = ()
    average: float | None = None


class SizeLine(msgspec.Struct, frozen=True):
    """Hockney's line through the times of one path (`row` and `column`; null where the columns are
    sizes) of a benchmark at several `sizes`: `latency` in seconds + bytes ÷ `bandwidth` in bytes/s.
    At `half_size` half of that bandwidth is reached. Null is what the sizes do not show. The line
    is off by at most `error` of a time, which it is at the size `worst`; where none fits, all
    three are null."""

    benchmark: str
    backend: str
    row: str
    column: str | None
    sizes: tuple[int, ...]
    error: float
    worst: int
    latency: float | None = None
    bandwidth: float | None = None
    half_size: float | None = None


class Run(msgspec.Struct, frozen=True, kw_only=True):
    """A whole run, as kept in `run.json`. `finished` is null if it was interrupted; `resumed` are
    the times at which it was resumed. `lines` are of what was measured at several sizes.
    `kernel_log` is null where nobody follows the log: of a simulated machine, and in files of
    earlier versions. `profiler_files` are the names of what a profiler left in the run's folder.
    `lost` is the rank whose loss ended the run, if it is of several. `soak` is how a run went that
    repeated its benchmarks for a time: its cells have the samples of some of their visits."""

    schema: Literal["linkgauge.run/1"] = SCHEMA
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

    @property
    def is_profiled(self) -> bool:
        """Whether it was measured under a profiler, which need not be `settings.profiler`: its
        figures are then neither judged nor compared."""
        notes = (note for result in self.results for cell in result.cells for note in cell.notes)
        return any(isinstance(note, Profiled) for note in notes)


_WORST_FIRST: tuple[Status, ...] = ("error", "timeout", "fail", "pass")


def worst(statuses: Iterable[Status]) -> Status:
    """Error, timeout, fail, pass, in that order; `skip` if all are."""
    present = set(statuses)
    return next((status for status in _WORST_FIRST if status in present), "skip")


def exit_code(run: Run) -> int:
    """Of the statuses alone: 0 all passed, 1 a failure or a device too hot, 3 an error, a timeout
    or a lost rank cost results, 4 nothing was measured; if several apply, the first of 3, 1, 4.
    Nothing measured is never success. 130 for a run without an end: it was interrupted."""
    if run.finished is None:
        return 130
    statuses = {cell.status for result in run.results for cell in result.cells}
    if run.lost is not None or statuses & {"error", "timeout"}:
        return 3
    too_hot = run.soak is not None and run.soak.stopped == "temperature"
    if "fail" in statuses or too_hot:
        return 1
    return 0 if "pass" in statuses else 4

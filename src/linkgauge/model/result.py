"""What a run leaves: `run.json`. docs/run.schema.json is generated from these types.

Absent is null, never 0; warnings are fields; figures are in the result's unit (SI base units).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Literal, NamedTuple

import msgspec
from msgspec import Meta

from .errors import OutcomeKind
from .inventory import Inventory, Reading
from .machine import Machine
from .modes import Mode
from .notes import Note
from .statistics import Summary
from .transfer import Cell, Place
from .units import Better

Status = Literal["pass", "fail", "skip", "error", "timeout"]
Stopped = Literal["precision", "samples", "max-time", "noise"]
Verdict = Literal["ok", "low", "high", "unknown"]
Definition = Literal["sustained", "serial", "span"]
"""Of a total: the sum of the rates while all transfers run; bytes over the span because they never
all ran together; or bytes over the span as nvbandwidth times it."""

SCHEMA: Literal["linkgauge.run/1"] = "linkgauge.run/1"


class CellKey(NamedTuple):
    """What identifies a cell in a plan, in a journal and between runs. `repeat` counts the sheets
    of the plan that are alike (a test that is measured several times), from 0."""

    benchmark: str
    backend: str
    size: int
    place: Place
    repeat: int = 0


class Part(msgspec.Struct, frozen=True, gc=False):
    """One concurrent transfer's own figure: `transfer` indexes the cell's transfers.

    `bytes` is what one loop moves, counted as the headline does.
    """

    transfer: int
    bytes: int
    samples: tuple[float, ...]
    summary: Summary | None


class Placement(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """What was obtained for one buffer: the host node its pages lie on (null: unknown or a
    device), whether they are locked, and how many of its bytes lie in huge pages. In files, what is
    null is left out: runs hold hundreds of thousands of these."""

    memory: str
    bytes: int
    node: int | None = None
    locked: bool | None = None
    huge_bytes: int | None = None


class Expected(msgspec.Struct, frozen=True, gc=False):
    """What the hardware should do, in the result's unit, and the arithmetic: `because`, or where it
    stands among the `texts` of the result (from 0), since many cells share it. `measured`: the
    achievable figure comes from what this run measured itself."""

    theoretical: float | None = None
    achievable: float | None = None
    because: str = ""
    text: int | None = None
    measured: bool = False


class Interval(msgspec.Struct, frozen=True, gc=False):
    """How a cell's `ci95` was formed. From `visits`: from how the medians of visits vary, pooled
    over so many `alike` cells, with so many `degrees` of freedom; another run's figure falls into
    it with the `coverage` that was shown for such cells. From `samples` alone (their number was
    fixed): it says how well the samples tell their own median, and nothing of another run."""

    basis: Literal["visits", "samples"]
    coverage: float | None = None
    degrees: int | None = None
    alike: int | None = None


class CellResult(Cell, frozen=True, gc=False):
    """One cell. `bytes` is what one loop of the headline figure moves; `locked` is false where
    a host buffer that should be locked in memory is not (null: none should be). `readings` are
    of its accelerators, taken while it was measured. `visits` are how many samples each gate of
    each visit let through, `seconds` how long sampling took in all; `modes` are the two groups
    that the samples fall into, the larger first, where they do. `definition` says what a total is
    (null: the figure is none, or of an earlier version, which divided by the span). `reason` says
    to people, and `kind` to programs, why it did not pass; so do `warnings` and `notes` what else
    there is to know. Warnings are in files alone: once read, a cell has its notes."""

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


class Sheet(msgspec.Struct, frozen=True, kw_only=True):
    """A benchmark on one backend at one size: what its cells have in common.

    `parts` names the matrices of single transfers; `reason` says why there are no cells. The
    columns of a `sweep` are settings, not memories: their sum means nothing. What is `simulated`
    says so wherever it is shown.
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


class PlannedCell(Cell, frozen=True, gc=False):
    """A cell to be measured. With `reason` it is skipped; cells of a sheet with the same `round`
    are measured at the same time. `number` counts the plan's cells."""

    reason: str | None = None
    round: int | None = None
    number: int = 0


class PlannedSheet(Sheet, frozen=True, kw_only=True):
    """A sheet with the cells to be measured."""

    cells: tuple[PlannedCell, ...] = ()


class Result(Sheet, frozen=True, kw_only=True):
    """A sheet with what was measured; its status is the worst of its cells. `texts` are those that
    its cells share, in files alone: once read, each cell has its own."""

    status: Status
    cells: tuple[CellResult, ...]
    texts: tuple[str, ...] = ()


class Pieces(msgspec.Struct, frozen=True):
    """Copies by accelerators are cut into pieces of `size` bytes, which `streams` streams (a
    kernel's blocks, a copy engine's queues) carry out side by side, each one after another;
    `payload` is the bytes of one access of a kernel, where it can be chosen."""

    size: int = 4096
    streams: int = 32
    payload: int = 256

    def describe(self, engine: str) -> str:
        """What of it concerns an engine (`ce` or `sm`), for people."""
        accesses = f", in accesses of {self.payload} bytes" if engine == "sm" else ""
        clock = "" if engine == "sm" else ", timed by the host's clock"
        return f"pieces of {self.size} bytes over {self.streams} streams{accesses}{clock}"


MOST_STREAMS = 32
"""Of copy engines: as many hardware queues as a device has."""

Blocks = Annotated[int, Meta(ge=1, lt=1 << 31, description="1 to 2147483647")]
Threads = Annotated[
    int, Meta(ge=64, le=1024, multiple_of=64, description="a multiple of 64, at most 1024")
]
Streams = Annotated[int, Meta(ge=1, le=MOST_STREAMS, description=f"1 to {MOST_STREAMS}")]


class EngineSettings(msgspec.Struct, frozen=True):
    """How engines are to work; null leaves it to the backend.

    `kernel`, `blocks` and `threads` shape copies by sm, `streams` splits copies by ce. `tuned`
    uses what was remembered as best for the device's model. `affinity` keeps the controlling
    thread on the node of the host memory, which is near the device or, if given, `numa_node`.
    With `pieces`, copies are cut up, and the shape of the others does not count. Without
    `peer_access`, devices do not reach each other's memory: what goes between two is left to the
    driver. Host threads use `host_kernel` for what it can do, else, if `host_tuned`, what is found
    to be best.
    """

    kernel: Literal["plain", "bulk"] | None = None
    blocks: Blocks | None = None
    threads: Threads | None = None
    streams: Streams | None = None
    tuned: bool = True
    affinity: bool = True
    numa_node: int | None = None
    pieces: Pieces | None = None
    peer_access: bool = True
    host_kernel: str | None = None
    host_tuned: bool = True


class Simulation(msgspec.Struct, frozen=True):
    """What is measured instead of this machine: a description (YAML, its text), by its name, and
    the faults that strike it, each in the grammar of `--fault`."""

    machine: str
    description: str
    faults: tuple[str, ...] = ()


class Settings(msgspec.Struct, frozen=True):
    """How a run measures. `samples` and `loops` are fixed counts (null: adaptive); `precision`
    is relative (0: sample for all of `max_time`); `max_time` is seconds a cell; `sizes` are bytes.
    With `parallel_pairs`, disjoint pairs of devices are measured at the same time. A cell that
    takes longer than `timeout` seconds is given up (null: where nothing happens any more).
    `pattern` is the 64-bit word that one-way copies move (null: words that all differ)."""

    sizes: tuple[int, ...]
    profile: str = "standard"
    precision: float = 0.01
    max_time: float = 2.0
    samples: int | None = None
    loops: int | None = None
    verify: bool = True
    parallel_pairs: bool = False
    engines: EngineSettings = EngineSettings()
    timeout: float | None = None
    pattern: int | None = None
    simulation: Simulation | None = None


class Run(msgspec.Struct, frozen=True, kw_only=True):
    """A whole run, as kept in `run.json`. `finished` is null where it was interrupted; `resumed`
    are the times at which it was gone on with."""

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
    settings: Settings
    results: tuple[Result, ...]


_WORST_FIRST: tuple[Status, ...] = ("error", "timeout", "fail", "pass")


def worst(statuses: Iterable[Status]) -> Status:
    """Error, timeout, fail, pass, in that order; `skip` if all are."""
    present = set(statuses)
    return next((status for status in _WORST_FIRST if status in present), "skip")


def exit_code(run: Run) -> int:
    """Of the statuses alone: 0 all passed, 1 a failure, 3 an error or a timeout cost results, 4
    nothing was measured; where several apply, the first of 3, 1, 4. Nothing measured is never
    success. 130 of a run without an end: it was interrupted."""
    if run.finished is None:
        return 130
    statuses = {cell.status for result in run.results for cell in result.cells}
    if statuses & {"error", "timeout"}:
        return 3
    if "fail" in statuses:
        return 1
    return 0 if "pass" in statuses else 4

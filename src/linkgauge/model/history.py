"""What a history of runs holds: runs, the figures of their cells, and what they were measured on.

Figures are in the cell's unit (SI base units); absent is null. Moments are ISO 8601 in UTC.
"""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from .result import Status, Verdict
from .settings import Settings
from .units import Better

DESCRIPTION = "description"
"""Among the settings of a simulated machine: the digest of its description."""


class PastRun(msgspec.Struct, frozen=True, kw_only=True):
    """A run of the history, which counts them by `number`. `accelerators` are the models that it
    found; `cells` is how many it has, `passed` and `low` how many of these passed, and how many
    are low. `setup` is the digest of the settings that figures depend on, `state` the number of
    the machine's state. `path` is the folder that it was kept in, on the host that measured it."""

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


class CellOf(NamedTuple):
    """What identifies a cell over runs of a machine. `transfers` are its notation: the same place
    may be measured by other engines or from other memory. `definition` says how a total is
    computed ("": none), `repeat` counts identical sheets of a run."""

    benchmark: str
    backend: str
    size: int
    row: str
    column: str
    transfers: str
    definition: str = ""
    repeat: int = 0


class Figure(msgspec.Struct, frozen=True, gc=False):
    """What a run says of a cell, in its `unit`: its headline `figure`; of its `n` samples the
    `median` with its interval (`low` to `high`), and the percentiles of the slow side."""

    unit: str
    better: Better
    status: Status
    verdict: Verdict = "unknown"
    figure: float | None = None
    median: float | None = None
    low: float | None = None
    high: float | None = None
    slow_p95: float | None = None
    slow_p99: float | None = None
    n: int = 0


class EarlierRun(msgspec.Struct, frozen=True):
    """A run and its cells, how it was measured, and the facts of its machine's state: what a later
    one of the same machine is judged against."""

    run: PastRun
    figures: dict[CellOf, Figure]
    settings: Settings
    state: dict[str, str]


class Point(NamedTuple):
    """A cell's figure in the run of this number, with its interval."""

    run: int
    figure: float
    low: float | None
    high: float | None


class Series(msgspec.Struct, frozen=True):
    """A cell over the runs of one machine under one setup, in the order of time."""

    cell: CellOf
    unit: str
    better: Better
    points: tuple[Point, ...]


class History(msgspec.Struct, frozen=True):
    """What a trend is formed of: the series of one machine under one setup (`settings`: what of it
    differs from the defaults), their runs, and the facts of each state of the machine."""

    host: str
    accelerators: str
    simulated: bool
    settings: dict[str, str]
    runs: tuple[PastRun, ...]
    states: dict[int, dict[str, str]]
    series: tuple[Series, ...]

"""A run that repeats its benchmarks for a time (a soak): the request, and the results over that
time.

Times are seconds since the run's start, without interruptions; on a simulated machine, simulated
seconds. Figures are in the unit of the result. Absent is null."""

from __future__ import annotations

from typing import Literal

import msgspec

from linkgauge.model.cell_id import CellId
from linkgauge.model.units import Better

SLICES = 48
"""The number of equal parts of the requested time, to which figures over time belong."""
SoakEnd = Literal["time", "temperature", "nothing"]
"""The reason why a soak ended: the time is over, a device is too hot, or all cells are skipped by
now."""


class Soaking(msgspec.Struct, frozen=True):
    """The request to repeat everything for a time.

    seconds: The time in seconds.
    max_temperature: The temperature of an accelerator, in °C, at which the run stops; null: no
        limit."""

    seconds: float
    max_temperature: float | None = None


class Moment(msgspec.Struct, frozen=True):
    """The moment at which a visit ended.

    at: Seconds since the run's start, without interruptions.
    time: Time of day (ISO 8601, UTC).
    round: The round, from 1."""

    at: float
    time: str
    round: int


class SlowMoment(msgspec.Struct, frozen=True):
    """One of the slowest samples.

    moment: When its visit ended.
    cell: Its cell.
    unit: The unit of its figure.
    figure: The sample.
    share: Its share of the cell's median speed.
    """

    moment: Moment
    cell: CellId
    unit: str
    figure: float
    share: float


class FailedVisit(msgspec.Struct, frozen=True):
    """A visit that did not pass.

    moment: When it ended.
    cell: Its cell.
    status: How it ended.
    reason: Why; null if that is unknown.
    """

    moment: Moment
    cell: CellId
    status: Literal["fail", "error", "timeout"]
    reason: str | None


class CellCourse(msgspec.Struct, frozen=True):
    """A cell over all rounds: percentiles of its samples are within 0.2 %.

    cell: Which cell it is.
    unit: The unit of its figures.
    better: Which figures are better.
    visits: Visits that measured it.
    samples: Samples of all visits.
    checked: Visits after which every byte was compared.
    struck: How many visits did not pass.
    median: Median of all samples; null without samples.
    slow_p95: 95 % of the samples are at least as good as this; null for too few samples.
    slow_p99: 99 % of the samples are at least as good as this; null for too few samples.
    slow_p999: 99.9 % of the samples are at least as good as this; null for too few samples.
    worst: The worst sample; null without samples.
    means: The mean of its visits' medians in each part of the time; null for a part without a
        visit."""

    cell: CellId
    unit: str
    better: Better
    visits: int
    samples: int
    checked: int
    struck: int
    median: float | None
    slow_p95: float | None
    slow_p99: float | None
    slow_p999: float | None
    worst: float | None
    means: tuple[float | None, ...] = ()


class Throttling(msgspec.Struct, frozen=True):
    """A reason that held a device's clocks down during a soak.

    reason: Why, as a sentence.
    visits: The number of visits in which it did.
    first: When it first did."""

    reason: str
    visits: int
    first: Moment


class DeviceCourse(msgspec.Struct, frozen=True):
    """A device in each part of the time; null for a part without a reading.

    memory: The device, in the notation.
    visits: Visits in which it was read.
    temperature: Its highest temperature in °C in each part.
    power: Its highest power in watts in each part.
    clock: Its lowest clock in Hz in each part.
    throttled: What held its clocks down.
    replays: Replays of its PCIe link within visits; null if unknown."""

    memory: str
    visits: int
    temperature: tuple[float | None, ...] = ()
    power: tuple[float | None, ...] = ()
    clock: tuple[float | None, ...] = ()
    throttled: tuple[Throttling, ...] = ()
    replays: int | None = None

    @property
    def hottest(self) -> float | None:
        return max((one for one in self.temperature if one is not None), default=None)


class Soak(msgspec.Struct, frozen=True, kw_only=True):
    """The course of a run that repeated its benchmarks for a time.

    asked: The request.
    lasted: Seconds that it lasted, without interruptions.
    rounds: The number of whole rounds; a part of another one may follow.
    visits: Visits that measured a cell.
    checked: Visits after which every byte was compared.
    compared: Bytes that were compared in all.
    stopped: Why it stopped: the time is over, a device is too hot, or every cell is skipped by now;
        null if it was interrupted.
    reason: Details of why it stopped; null if there are none.
    slice: Length of one part of the time in seconds.
    cells: Each cell over the time.
    worst: The slowest samples.
    struck: Visits that did not pass, the first of them.
    more: The number of other visits that did not pass.
    devices: Each device over the time."""

    asked: Soaking
    lasted: float
    rounds: int
    visits: int
    checked: int
    compared: int
    stopped: SoakEnd | None
    reason: str | None
    slice: float
    cells: tuple[CellCourse, ...]
    worst: tuple[SlowMoment, ...] = ()
    struck: tuple[FailedVisit, ...] = ()
    more: int = 0
    devices: tuple[DeviceCourse, ...] = ()

"""How a soak (a run that repeats its benchmarks) is requested, and what it finds. Times are seconds
of the run; interruptions do not count."""

from __future__ import annotations

from typing import Literal

import msgspec

from linkgauge.model.cell_id import CellId
from linkgauge.model.shareable import MemoryName, Reason, Time, Title, Word
from linkgauge.model.units import Better

SLICES = 48
"""The number of equal parts into which the requested time is divided for figures over time."""
SoakEnd = Literal["time", "temperature", "nothing"]
"""The reason why a soak ended: the time is over, a device is too hot, or all cells are skipped by
now."""


class Soaking(msgspec.Struct, frozen=True):
    """The request to repeat all benchmarks for a time.

    seconds: How long to repeat the benchmarks, in seconds.
    max_temperature: The temperature of an accelerator (°C) that ends the run; null for no limit."""

    seconds: float
    max_temperature: float | None = None


class Moment(msgspec.Struct, frozen=True):
    """The moment at which a repetition of a cell ended.

    at: Seconds since the run's start, without interruptions.
    time: Time of day (ISO 8601, UTC).
    round: The number of the round (one pass over all cells), from 1."""

    at: float
    time: Time
    round: int


class SlowMoment(msgspec.Struct, frozen=True):
    """One of the slowest samples of a soak.

    moment: When the repetition of the sample ended.
    cell: The cell of the sample.
    unit: The unit of the sample.
    figure: The sample.
    share: The speed of the sample as a share of the cell's median speed."""

    moment: Moment
    cell: CellId
    unit: Title
    figure: float
    share: float


class FailedRepetition(msgspec.Struct, frozen=True):
    """A repetition of a cell that did not pass.

    moment: When the repetition ended.
    cell: The cell that was measured.
    status: How the repetition ended.
    reason: Why the repetition did not pass; null if unknown."""

    moment: Moment
    cell: CellId
    status: Literal["fail", "error", "timeout"]
    reason: Reason | None


class CellCourse(msgspec.Struct, frozen=True):
    """The results of a cell over all rounds of a soak. Percentiles are accurate within 0.2 %.

    cell: The identity of the cell.
    unit: The unit of its figures.
    better: Whether higher or lower figures are better.
    repetitions: How many repetitions measured the cell.
    samples: How many samples all repetitions took.
    checked: The number of repetitions that compared every byte.
    failed: How many repetitions did not pass.
    median: Median of all samples; null without samples.
    slow_p95: 95 % of the samples are at least as good as this; null for too few samples.
    slow_p99: 99 % of the samples are at least as good as this; null for too few samples.
    slow_p999: 99.9 % of the samples are at least as good as this; null for too few samples.
    worst: The worst sample; null without samples.
    means: The mean of the repetitions' medians in each part of the time; null without any."""

    cell: CellId
    unit: Title
    better: Better
    repetitions: int
    samples: int
    checked: int
    failed: int
    median: float | None
    slow_p95: float | None
    slow_p99: float | None
    slow_p999: float | None
    worst: float | None
    means: tuple[float | None, ...] = ()


class Throttling(msgspec.Struct, frozen=True):
    """A cause that throttled a device's clocks during a soak.

    reason: The cause, such as `power cap`.
    repetitions: The number of repetitions in which the cause was active.
    first: When the cause was first active."""

    reason: Word
    repetitions: int
    first: Moment


class DeviceCourse(msgspec.Struct, frozen=True):
    """The readings of a device in each part of a soak's time; null for a part without a reading.

    memory: The name of the device's memory, such as `cuda:0`.
    repetitions: How many repetitions read the device.
    temperature: Its highest temperature in °C in each part.
    power: Its highest power in watts in each part.
    clock: Its lowest clock in Hz in each part.
    throttled: What throttled the device's clocks.
    replays: How many PCIe replays its link had during repetitions; null if unknown."""

    memory: MemoryName
    repetitions: int
    temperature: tuple[float | None, ...] = ()
    power: tuple[float | None, ...] = ()
    clock: tuple[float | None, ...] = ()
    throttled: tuple[Throttling, ...] = ()
    replays: int | None = None

    @property
    def hottest(self) -> float | None:
        return max((one for one in self.temperature if one is not None), default=None)


class Soak(msgspec.Struct, frozen=True, kw_only=True):
    """The results over time of a run that repeated its benchmarks (a soak).

    asked: The request.
    lasted: Seconds that the soak lasted, without interruptions.
    rounds: The number of complete rounds. An incomplete round may follow.
    repetitions: How many repetitions measured a cell.
    checked: The number of repetitions that compared every byte.
    compared: The total number of bytes that were compared.
    stopped: Why it stopped: time over, device too hot, or all cells skipped; null if interrupted.
    reason: Details of why the soak stopped; null if there are none.
    slice: Length of one part of the time in seconds.
    cells: The results of each cell over all rounds.
    worst: The slowest samples.
    failed: The first repetitions that did not pass.
    more: The number of other repetitions that did not pass, which `failed` does not list.
    devices: The readings of each device."""

    asked: Soaking
    lasted: float
    rounds: int
    repetitions: int
    checked: int
    compared: int
    stopped: SoakEnd | None
    reason: Reason | None
    slice: float
    cells: tuple[CellCourse, ...]
    worst: tuple[SlowMoment, ...] = ()
    failed: tuple[FailedRepetition, ...] = ()
    more: int = 0
    devices: tuple[DeviceCourse, ...] = ()

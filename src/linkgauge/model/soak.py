"""A run that repeats its benchmarks for a time: what was asked, and how it went over that time.

Times are seconds since its start, without those in which it was interrupted; of a simulated
machine, its own. Figures are in the unit of the result. Absent is null.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from .units import Better

SLICES = 48
"""Equal parts of the time that was asked for: figures over time are of these."""
SoakEnd = Literal["time", "temperature", "nothing"]
"""The time is over, a device is too hot, or every cell is skipped by now."""


class Soaking(msgspec.Struct, frozen=True):
    """Repeat everything for so many seconds, and stop if an accelerator reaches `max_temperature`
    (°C; null: whatever it reaches)."""

    seconds: float
    max_temperature: float | None = None


class CellName(msgspec.Struct, frozen=True):
    """A cell of a run."""

    benchmark: str
    backend: str
    size: int
    row: str
    column: str

    def __str__(self) -> str:
        return f"{self.benchmark} ({self.row}, {self.column})"


class Moment(msgspec.Struct, frozen=True):
    """When a visit ended: `at` in seconds, `time` of day (ISO 8601, UTC), in which `round`, from
    1."""

    at: float
    time: str
    round: int


class SlowMoment(msgspec.Struct, frozen=True):
    """One of the slowest samples: its figure, and what share of the cell's median speed that is."""

    moment: Moment
    cell: CellName
    unit: str
    figure: float
    share: float


class Struck(msgspec.Struct, frozen=True):
    """A visit that did not pass, and why."""

    moment: Moment
    cell: CellName
    status: Literal["fail", "error", "timeout"]
    reason: str | None


class CellCourse(msgspec.Struct, frozen=True):
    """A cell over all rounds: of its `samples`, percentiles within 0.2 % (`slow_p99`: 99 % are at
    least as good), and in each part of the time the mean of its visits' medians. `checked` visits
    had every byte compared; `struck` ones did not pass."""

    cell: CellName
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
    """What held a device's clocks down, in how many visits, and when first."""

    reason: str
    visits: int
    first: Moment


class DeviceCourse(msgspec.Struct, frozen=True):
    """A device in each part of the time: its highest temperature (°C) and power (W), its lowest
    clock (Hz). `replays` are of its PCIe link, within visits."""

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
    """How it went. It `lasted` so long of what was `asked`, in whole `rounds` and a part of another
    one; `stopped` is null if it was interrupted. `checked` visits had every byte compared,
    `compared` bytes in all. The first of what was `struck` is listed, `more` counts the others. A
    part of the time is `slice` seconds long."""

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
    struck: tuple[Struck, ...] = ()
    more: int = 0
    devices: tuple[DeviceCourse, ...] = ()

"""What a watch reports while it goes on: each is a line of its own, `event` says which.

Moments are times of day (ISO 8601, UTC), figures are in the cell's unit. Absent is null.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from .history import CellOf

Why = Literal["history", "expected", "fail", "error", "timeout"]
"""Slower than it was, below what is expected, wrong bytes, an error, or no answer."""


class _Event(msgspec.Struct, frozen=True, kw_only=True, tag_field="event"):
    time: str


class Begun(_Event, frozen=True, kw_only=True, tag="begun"):
    """So many `cells` of a machine are watched: a probe every so many seconds, in which devices may
    be kept busy for the share `budget` of the time."""

    machine: str
    simulated: bool
    cells: int
    every: float
    budget: float


class Probed(_Event, frozen=True, kw_only=True, tag="probe"):
    """A probe has ended, the `number`-th from 1. It measured so many of the cells, and kept devices
    busy for `seconds`; `busy` and `duty` are those of the whole watch, per `elapsed` seconds of
    whole intervals. `left_alone` says why devices were, `degraded` counts cells that are now."""

    number: int
    cells: int
    seconds: float
    busy: float
    elapsed: float
    duty: float
    degraded: int
    left_alone: dict[str, str] = {}


class Noticed(_Event, frozen=True, kw_only=True):
    """What was seen of a cell: its figure, the `usual` one of so many `earlier` probes and runs,
    and the one that is `expected` of the hardware."""

    cell: CellOf
    why: Why
    unit: str
    simulated: bool
    figure: float | None = None
    usual: float | None = None
    earlier: int = 0
    expected: float | None = None
    reason: str | None = None


class Degraded(Noticed, frozen=True, kw_only=True, tag="degraded"):
    """A cell is worse than it should be, and was so when it was measured once more."""


class Recovered(Noticed, frozen=True, kw_only=True, tag="recovered"):
    """A cell is as it should be again, after so many `seconds`."""

    seconds: float


class LeftAlone(_Event, frozen=True, kw_only=True, tag="busy"):
    """A device is at work for others: its cells wait."""

    device: str
    why: str


class Idle(_Event, frozen=True, kw_only=True, tag="idle"):
    """A device that was left alone is measured again."""

    device: str


class Problem(_Event, frozen=True, kw_only=True, tag="problem"):
    """A probe could not be carried out, or not be kept: the watch goes on."""

    reason: str


class Ended(_Event, frozen=True, kw_only=True, tag="ended"):
    """So many probes were made, and cells measured in them. `degraded` names the cells that still
    are."""

    probes: int
    cells: int
    busy: float
    elapsed: float
    duty: float
    degraded: tuple[CellOf, ...] = ()


Event = Begun | Probed | Degraded | Recovered | LeftAlone | Idle | Problem | Ended

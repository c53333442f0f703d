"""What a watch reports while it goes on: each is a line of its own, `event` says which.

Moments are times of day (ISO 8601, UTC), figures are in the cell's unit. Absent is null.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from linkgauge.model.figure import SeriesId

Why = Literal["history", "expected", "fail", "error", "timeout"]
"""Slower than it was, below what is expected, wrong bytes, an error, or no answer."""


class _Event(msgspec.Struct, frozen=True, kw_only=True, tag_field="event"):
    """What a watch reports.

    event: What has happened.
    time: When (ISO 8601, UTC).
    """

    time: str


class Begun(_Event, frozen=True, kw_only=True, tag="begun"):
    """Cells of a machine are watched.

    machine: The machine's name.
    simulated: Whether it is a simulated machine.
    cells: How many cells are watched.
    every: Seconds from one probe to the next.
    budget: The share of the time in which devices may be kept busy, from 0 to 1.
    """

    machine: str
    simulated: bool
    cells: int
    every: float
    budget: float


class Probed(_Event, frozen=True, kw_only=True, tag="probe"):
    """A probe has ended.

    number: Which probe it was, from 1.
    cells: How many cells it measured.
    seconds: Seconds in which it kept devices busy.
    busy: Seconds in which the whole watch kept devices busy.
    elapsed: Seconds of the whole intervals so far.
    duty: The share of these in which devices were busy, from 0 to 1.
    degraded: How many cells are degraded now.
    left_alone: Why a device was left alone, by its memory.
    """

    number: int
    cells: int
    seconds: float
    busy: float
    elapsed: float
    duty: float
    degraded: int
    left_alone: dict[str, str] = {}


class Noticed(_Event, frozen=True, kw_only=True):
    """What was seen of a cell.

    cell: Which cell it is.
    why: What is wrong with it, or was: slower than it was (`history`), below what is `expected`,
        wrong bytes (`fail`), an error, or no answer.
    unit: The unit of its figures.
    simulated: Whether it was measured on a simulated machine.
    figure: Its figure; null without one.
    usual: Its usual figure; null if that is not known.
    earlier: How many earlier probes and runs say what is usual.
    expected: The figure that is expected of the hardware; null if nothing is.
    reason: Why it did not pass; null if it passed.
    """

    cell: SeriesId
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
    """A cell is as it should be again.

    seconds: Seconds after which it is.
    """

    seconds: float


class LeftAlone(_Event, frozen=True, kw_only=True, tag="busy"):
    """A device is at work for others: its cells wait.

    device: The device, in the notation; `host` is the host.
    why: Why it was left alone.
    """

    device: str
    why: str


class Idle(_Event, frozen=True, kw_only=True, tag="idle"):
    """A device that was left alone is measured again.

    device: The device, in the notation; `host` is the host.
    """

    device: str


class Problem(_Event, frozen=True, kw_only=True, tag="problem"):
    """A probe could not be carried out, or not be kept: the watch goes on.

    reason: What went wrong.
    """

    reason: str


class Ended(_Event, frozen=True, kw_only=True, tag="ended"):
    """The watch has ended.

    probes: How many probes were made.
    cells: How many cells were measured in them.
    busy: Seconds in which they kept devices busy.
    elapsed: Seconds of whole intervals.
    duty: The share of these in which devices were busy, from 0 to 1.
    degraded: The cells that are still degraded.
    """

    probes: int
    cells: int
    busy: float
    elapsed: float
    duty: float
    degraded: tuple[SeriesId, ...] = ()


SCHEMA = "linkgauge.watch/1"
"""What its lines are, though none of them says so."""
Event = Begun | Probed | Degraded | Recovered | LeftAlone | Idle | Problem | Ended

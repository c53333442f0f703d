"""Defines a watch's events, one per line. Times are ISO 8601 (UTC), figures in the cell's unit."""

from __future__ import annotations

import math
from typing import Any, Literal

import msgspec

from linkgauge.model.documents.history import SeriesId
from linkgauge.model.documents.result import RunVerdict, Verdict
from linkgauge.model.notation import encode_hook
from linkgauge.model.printable import escaped
from linkgauge.model.units import (
    count_of,
    format_duration,
    format_size,
    format_with_unit,
    percent,
    unit_of,
)
from linkgauge.report.blocks import Line, Span, line
from linkgauge.report.results import mark
from linkgauge.report.words.sentences import first_of

Why = Literal["history", "expected", "fail", "error", "timeout"]
"""The reason of an event: slower than before, below the expectation, wrong bytes, an error, or no
answer."""


class _WatchEvent(msgspec.Struct, frozen=True, kw_only=True, tag_field="event"):
    """An event of a watch.

    event: The kind of the event (a tag in JSON).
    time: The time of the event (ISO 8601, UTC)."""

    time: str


class Begun(_WatchEvent, frozen=True, kw_only=True, tag="begun"):
    """A watch of a machine's cells has begun.

    machine: The machine's name.
    simulated: Whether the machine is simulated.
    cells: The number of watched cells.
    every: The seconds from one probe to the next.
    budget: The share of the time in which devices may be kept busy, from 0 to 1."""

    machine: str
    simulated: bool
    cells: int
    every: float
    budget: float


class Probed(_WatchEvent, frozen=True, kw_only=True, tag="probe"):
    """A probe has ended.

    number: The number of the probe, from 1.
    cells: The number of cells that the probe measured.
    seconds: The seconds in which the probe kept devices busy.
    busy: The seconds in which the whole watch kept devices busy.
    elapsed: The seconds that the watch has lasted, to the end of this interval.
    duty: The share of `elapsed` in which devices were busy, from 0 to 1.
    degraded: The number of cells that are degraded now.
    left_alone: The reasons why devices were not measured, by the names of their memories."""

    number: int
    cells: int
    seconds: float
    busy: float
    elapsed: float
    duty: float
    degraded: int
    left_alone: dict[str, str] = {}


class Noticed(_WatchEvent, frozen=True, kw_only=True):
    """An observation of a cell.

    cell: The cell.
    bytes: The bytes to which the figure refers; null for work without memory.
    why: The present or past problem of the cell: slower than it was (`history`), below what is
      `expected`, wrong bytes (`fail`), an error, or no answer.
    unit: The unit of the cell's figures.
    simulated: Whether the machine is simulated.
    figure: The cell's figure; null if there is none.
    usual: The cell's usual figure; null if unknown.
    earlier: The number of earlier figures; `usual` is their median.
    expected: The figure that the hardware should reach; null if unknown.
    share: The figure's share of what the hardware should reach when nothing is degraded; null if
      the cell is not judged.
    verdict: The verdict on the figure, by what the hardware should reach.
    reason: The reason why the cell did not pass; null if it passed."""

    cell: SeriesId
    bytes: int | None
    why: Why
    unit: str
    simulated: bool
    figure: float | None = None
    usual: float | None = None
    earlier: int = 0
    expected: float | None = None
    share: float | None = None
    verdict: Verdict = "not judged"
    reason: str | None = None


class Degraded(Noticed, frozen=True, kw_only=True, tag="degraded"):
    """A cell is worse than it should be; a second measurement confirmed it."""


class Recovered(Noticed, frozen=True, kw_only=True, tag="recovered"):
    """A cell is as it should be again.

    seconds: The seconds in which the cell was degraded."""

    seconds: float


class LeftAlone(_WatchEvent, frozen=True, kw_only=True, tag="busy"):
    """Other processes use a device, so its cells wait.

    device: The name of the device's memory, such as `cuda:0`; `host` for the host.
    why: The reason why the device was left alone."""

    device: str
    why: str


class MeasuredAgain(_WatchEvent, frozen=True, kw_only=True, tag="idle"):
    """A device that was left alone is measured again.

    device: The name of the device's memory, such as `cuda:0`; `host` for the host."""

    device: str


class ProbeFailed(_WatchEvent, frozen=True, kw_only=True, tag="problem"):
    """A probe failed, or the history cannot be used; the watch continues.

    reason: The error."""

    reason: str


class WatchEnded(_WatchEvent, frozen=True, kw_only=True, tag="ended"):
    """The watch has ended.

    verdict: The verdict on all probes: `fail` if the doctor found a failure, `low` if cells are
        degraded.
    exit_code: The exit code of the watch.
    findings: The doctor's findings about what the probes measured, each once.
    probes: The number of probes.
    cells: The number of cells measured in all probes.
    busy: The seconds in which the probes kept devices busy.
    elapsed: The seconds that the watch has lasted, to the end of the last interval.
    duty: The share of `elapsed` in which devices were busy, from 0 to 1.
    degraded: The cells that are still degraded."""

    verdict: RunVerdict = "not judged"
    exit_code: int = 0
    findings: tuple[Any, ...] = ()
    probes: int
    cells: int
    busy: float
    elapsed: float
    duty: float
    degraded: tuple[SeriesId, ...] = ()


SCHEMA = "linkgauge.watch/1"
"""The schema of a watch's lines, although no line names the schema."""
Event = Begun | Probed | Degraded | Recovered | LeftAlone | MeasuredAgain | ProbeFailed | WatchEnded


# What a watch reports, a line each: for people, or as JSON.


def event_json(event: Event) -> str:
    return escaped(msgspec.json.encode(event, enc_hook=encode_hook)).decode()


def event_line(event: Event) -> Line | None:
    """Formats an event, or returns None if it is only for programs."""
    said = _said(event)
    if said is None:
        return None
    when = Span(f"{event.time[:19].replace('T', ' ')}Z  ", "dim")
    return line(when, *said, mark(isinstance(event, Begun | Noticed) and event.simulated))


def _said(event: Event) -> tuple[str | Span, ...] | None:
    match event:
        case Begun():
            every, budget = format_duration(event.every), percent(event.budget)
            how = f"a probe every {every}, devices busy for at most {budget} of the time"
            return (f"watching {count_of(event.cells)} of {event.machine}: {how}",)
        case Degraded():
            return Span("DEGRADED", "bad"), f"  {_noticed(event)}"
        case Recovered():
            after = f"after {format_duration(event.seconds)}"
            return Span("recovered", "good"), f"  {_noticed(event)}, {after}"
        case LeftAlone():
            return Span("left alone", "warn"), f"  {event.device}: {event.why}"
        case MeasuredAgain():
            return (f"idle again  {event.device}",)
        case ProbeFailed():
            return Span("problem", "warn"), f"  {event.reason}"
        case WatchEnded():
            return (_ended(event),)
        case Probed():
            return None


def _noticed(event: Noticed) -> str:
    cell = event.cell
    size = f" {format_size(event.bytes)}" if event.bytes else ""
    parts = []
    if event.figure is not None:
        parts.append(_figure(event.figure, event))
        if event.usual:
            usual = f"its usual {_figure(event.usual, event)}"
            share = _share(event.figure, event.usual, event)
            parts.append(f"{share} {usual} ({event.earlier} earlier)")
        if event.expected:
            share = _share(event.figure, event.expected, event)
            parts.append(f"{share} the expected {_figure(event.expected, event)}")
    if event.why not in ("history", "expected"):
        reason = f": {event.reason}" if event.reason else ""
        parts.insert(0, f"{event.why}{reason}")
    return f"{cell}{size}  {', '.join(parts)}"


def _share(figure: float, of: float, event: Noticed) -> str:
    is_time = unit_of(event.unit).better == "lower"
    return f"{figure / of:.3g} times" if is_time else f"{figure / of:.0%} of"


def _figure(value: float, event: Noticed) -> str:
    return format_with_unit(value, event.unit)


def _ended(event: WatchEnded) -> str:
    probes = "1 probe" if event.probes == 1 else f"{event.probes:,} probes"
    busy = f"{format_duration(event.busy)} of {format_duration(event.elapsed)}"
    duty = f"devices busy for {busy} ({_duty(event.duty)})"
    names = first_of(list(map(str, event.degraded)), ", ")
    degraded = f"degraded: {names}" if names else "no measured cell is degraded"
    found = [f"{one.severity} {one.check} {one.subject}" for one in event.findings]
    doctor = f"; doctor: {first_of(found, ', ')}" if found else ""
    return f"ended: {probes}, {count_of(event.cells)} measured, {duty}; {degraded}{doctor}"


def _duty(share: float) -> str:
    """Formats the share of busy time. A small share has only one digit: `0.00009%`."""
    if share >= 0.0001 or not share > 0:
        return percent(share)
    return f"{100 * share:.{-math.floor(math.log10(100 * share))}f}%"

"""What a watch reports, a line each: for people, or as JSON."""

from __future__ import annotations

import math

import msgspec

from linkgauge.model.printable import escaped
from linkgauge.model.units import count_of, format_duration, format_size, percent, unit_of
from linkgauge.report.blocks import Line, Span, line
from linkgauge.report.matrix import brief
from linkgauge.report.results import mark
from linkgauge.report.sentences import first_of

from .events import (
    Begun,
    Degraded,
    Ended,
    Event,
    Idle,
    LeftAlone,
    Noticed,
    Probed,
    Problem,
    Recovered,
)


def event_json(event: Event) -> str:
    """One line."""
    return escaped(msgspec.json.encode(event)).decode()


def event_line(event: Event) -> Line | None:
    """None for what people need not be told."""
    said = _said(event)
    if said is None:
        return None
    simulated = isinstance(event, Begun | Noticed) and event.simulated
    when = Span(f"{event.time[:19].replace('T', ' ')}Z  ", "dim")
    return line(when, *said, mark(simulated))


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
        case Idle():
            return (f"idle again  {event.device}",)
        case Problem():
            return Span("problem", "warn"), f"  {event.reason}"
        case Ended():
            return (_ended(event),)
        case Probed():
            return None


def _noticed(event: Noticed) -> str:
    """`NAME (0, 1)  24.10 GB/s, 44% of its usual 55.31 GB/s (60 earlier), …`."""
    cell = event.cell
    size = f" {format_size(cell.size)}" if cell.size else ""
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
    """`44% of`; of a time, `10.9 times`."""
    is_time = unit_of(event.unit).better == "lower"
    return f"{figure / of:.3g} times" if is_time else f"{figure / of:.0%} of"


def _figure(value: float, event: Noticed) -> str:
    return f"{brief(value, event.unit)} {unit_of(event.unit).shown}"


def _ended(event: Ended) -> str:
    probes = "1 probe" if event.probes == 1 else f"{event.probes:,} probes"
    busy = f"{format_duration(event.busy)} of {format_duration(event.elapsed)}"
    duty = f"devices busy for {busy} ({_duty(event.duty)})"
    names = first_of(list(map(str, event.degraded)), ", ")
    degraded = f"degraded: {names}" if names else "nothing is degraded"
    return f"ended: {probes}, {count_of(event.cells)} measured, {duty}; {degraded}"


def _duty(share: float) -> str:
    """Of a small share one digit counts: 0.00009%."""
    if share >= 0.0001 or not share > 0:
        return percent(share)
    return f"{100 * share:.{-math.floor(math.log10(100 * share))}f}%"

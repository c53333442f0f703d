"""What is said of products of matrices besides their figures: the state of their devices."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from linkgauge.model.inventory import Reading
from linkgauge.model.matmul import PRODUCTS
from linkgauge.model.result import Result

from .blocks import Line, Span, line

_MHZ = 1e6


def state_lines(result: Result, *, detailed: bool = True) -> Iterator[Line]:
    """A line for each row of products: what throttled its devices; `detailed`: also their clocks,
    power and temperature meanwhile."""
    for row in dict.fromkeys(cell.row for cell in result.cells if cell.operation in PRODUCTS):
        cells = (cell for cell in result.cells if cell.row == row)
        readings = [reading for cell in cells for reading in cell.readings if reading.count]
        figures, throttled = ", ".join(_figures(readings)) if detailed else "", _throttled(readings)
        joint = "; " if figures and throttled else ""
        if figures or throttled:
            name, state = Span(f"{row} ", "name"), Span(figures, "dim")
            yield line(name, state, joint, Span(throttled, "warn"))


def _figures(readings: Sequence[Reading]) -> Iterator[str]:
    lowest = [one.clock_min for one in readings if one.clock_min is not None]
    highest = [one.clock_max for one in readings if one.clock_max is not None]
    if lowest and highest:
        ends = dict.fromkeys((f"{min(lowest) / _MHZ:.0f}", f"{max(highest) / _MHZ:.0f}"))
        yield f"{' to '.join(ends)} MHz"
    for values, unit in (
        ([one.power_max for one in readings], "W"),
        ([one.temperature_max for one in readings], "°C"),
    ):
        known = [value for value in values if value is not None]
        if known:
            yield f"at most {max(known):.0f} {unit}"


def _throttled(readings: Sequence[Reading]) -> str:
    """By what, and which of several devices."""
    reasons: dict[str, list[str]] = {}
    for reading in readings:
        for reason in reading.throttled:
            reasons.setdefault(reason, []).append(reading.memory)
    devices = {reading.memory for reading in readings}
    named = [
        reason if len(set(of)) == len(devices) else f"{reason} ({', '.join(dict.fromkeys(of))})"
        for reason, of in reasons.items()
    ]
    return f"throttled: {', '.join(named)}" if named else ""

"""What a run measured at several sizes: a curve for each path, and the line that fits it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from linkgauge.model.curves import SizeLine
from linkgauge.model.stats.hockney import OFF
from linkgauge.model.units import BANDWIDTH, approximate_size, format_size

from .blocks import Line, Span, line
from .matrix import shown

MOST_PATHS = 16
"""Of more paths, the lowest, the median and the highest figures are shown."""
UNTOLD = "these sizes do not separate latency from bandwidth"
LEAST_SHOWN = 0.001
"""A line that is closer to the times is said to be within this."""


def _name(row: str, column: str | None) -> str:
    return row if column is None else f"{row}, {column}"


def line_lines(lines: Sequence[SizeLine], most: int = MOST_PATHS) -> Iterator[Line]:
    """The line of each path; of more than `most`, what they have in common."""
    if len(lines) > most:
        yield from _common(lines)
        return
    for one in lines:
        yield line(Span(f"{_name(one.row, one.column)}  ", "name"), _sentence(one))


def _sentence(line: SizeLine) -> str:
    if line.error > OFF:
        return f"no line fits: {line.error:.1%} off at {format_size(line.worst)}"
    if line.latency is None and line.bandwidth is None:
        return UNTOLD
    within = f"({_within(line.error)}, worst at {format_size(line.worst)})"
    if line.error < LEAST_SHOWN:
        within = f"({_within(line.error)})"
    if line.bandwidth is None:
        return f"time = {_time(line.latency)}, whatever the size {within}"
    rate = f"bytes ÷ {_rate(line.bandwidth)}"
    if line.latency is None or line.half_size is None:
        least = format_size(line.sizes[0])
        return f"time = {rate}, with a latency too short to show at {least} {within}"
    return (
        f"time = {_time(line.latency)} + {rate}, half of that bandwidth at "
        f"{_half(line)}{_beyond(line)} {within}"
    )


def _within(error: float) -> str:
    return f"within {max(error, LEAST_SHOWN):.1%}"


def _beyond(line: SizeLine) -> str:
    """Where the half bandwidth's size was not between those measured."""
    half = line.half_size or 0.0
    if half < line.sizes[0]:
        return ", below the sizes measured"
    return ", above the sizes measured" if half > line.sizes[-1] else ""


def _common(lines: Sequence[SizeLine]) -> Iterator[Line]:
    known = [one for one in lines if one.half_size is not None]
    if known:
        each = (
            _ends("latency", [(one.latency or 0.0, _time(one.latency)) for one in known]),
            _ends("bandwidth", [(one.bandwidth or 0.0, _rate(one.bandwidth)) for one in known]),
            _ends("half of it at", [(one.half_size or 0.0, _half(one)) for one in known]),
            _within(max(one.error for one in known)),
        )
        yield line(Span(_paths(len(known)), "name"), ", ".join(each))
    others = Counter(_kind(one) for one in lines if one.half_size is None)
    for kind, count in others.items():
        yield line(Span(_paths(count), "name"), kind)


def _paths(count: int) -> str:
    return "1 path  " if count == 1 else f"{count} paths  "


def _ends(name: str, values: Sequence[tuple[float, str]]) -> str:
    ends = dict.fromkeys((min(values)[1], max(values)[1]))
    return f"{name} {' to '.join(ends)}"


def _kind(line: SizeLine) -> str:
    if line.error > OFF:
        return "no line fits"
    if line.bandwidth is None:
        return UNTOLD if line.latency is None else "a latency whatever the size"
    return "a latency too short to show"


def _half(line: SizeLine) -> str:
    return approximate_size(round(line.half_size or 0.0))


_TIMES = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns"))


def _time(seconds: float | None) -> str:
    """In the unit that suits."""
    value = seconds or 0.0
    scale, unit = next((one for one in _TIMES if value >= one[0]), _TIMES[-1])
    return f"{value / scale:.2f} {unit}"


def _rate(rate: float | None) -> str:
    return f"{shown(rate or 0.0, BANDWIDTH.symbol)} {BANDWIDTH.shown}"

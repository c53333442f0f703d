"""Describes fitted lines, which give the time of a copy as a function of its size."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence

from linkgauge.model.curves import SizeLine, SizePiece
from linkgauge.model.names import range_of
from linkgauge.model.stats.hockney import OFF
from linkgauge.model.units import BANDWIDTH, approximate_size, format_decimals, format_size
from linkgauge.report.blocks import Line, Span, line

MOST_PATHS = 16
"""With more, only their extremes are shown."""
LEAST_SHOWN = 0.001
"""The least error of a fitted line that a sentence states. A smaller error shows as this one."""
_NO_LINE = "no line fits"
_UNTOLD = "these sizes do not separate latency from bandwidth"
_LATENCY_ALONE = "a latency whatever the size"
_TOO_SHORT = "a latency too short to show"


def line_lines(lines: Sequence[SizeLine], most: int = MOST_PATHS) -> Iterator[Line]:
    """Yields each path's fitted line; above `most` paths, only the ranges of the lines' values."""
    if len(lines) <= most:
        for one in lines:
            name = ", ".join(filter(None, (one.row, one.column)))
            yield line(Span(f"{name}  ", "name"), _sentence(one))
        return
    known = [one for one in lines if one.half_size is not None]
    if known:
        each = (
            _ends("latency", [one.latency for one in known], _time),
            _ends("bandwidth", [one.bandwidth for one in known], _rate),
            _ends("half of that rate at", [one.half_size for one in known], _size),
            f"fits {_within(max(one.error for one in known))}",
        )
        yield line(Span(_paths(len(known)), "name"), ", ".join(each))
    others = Counter(_lacks(one) for one in lines if one.half_size is None)
    for kind, count in others.items():
        yield line(Span(_paths(count), "name"), kind)


def _paths(count: int) -> str:
    return "1 path  " if count == 1 else f"{count} paths  "


def _ends(name: str, values: Sequence[float | None], shown: Callable[[float], str]) -> str:
    return f"{name} {range_of(shown, [value or 0.0 for value in values])}"


def _lacks(line: SizeLine) -> str:
    if line.error > OFF:
        return _NO_LINE
    if line.bandwidth is None:
        return _UNTOLD if line.latency is None else _LATENCY_ALONE
    return _TOO_SHORT if line.latency is None or line.half_size is None else ""


def _sentence(line: SizeLine) -> str:
    lacks, worst = _lacks(line), format_size(line.worst)
    if line.pieces:
        error = max(piece.error for piece in line.pieces)
        return f"time = {'; '.join(map(_piece, line.pieces))} ({_within(error)})"
    if lacks == _NO_LINE:
        return f"{lacks}: {line.error:.1%} off at {worst}"
    if lacks == _UNTOLD:
        return lacks
    at = "" if line.error < LEAST_SHOWN else f", worst at {worst}"
    within = f"(fits {_within(line.error)}{at})"
    latency, rate = _time(line.latency or 0.0), f"bytes ÷ {_rate(line.bandwidth or 0.0)}"
    if lacks == _LATENCY_ALONE:
        return f"time = {latency}, whatever the size {within}"
    if lacks == _TOO_SHORT:
        return f"time = {rate}, with {lacks} at {format_size(line.sizes[0])} {within}"
    half = line.half_size or 0.0
    beyond = ", below the sizes measured" if half < line.sizes[0] else ""
    beyond = ", above the sizes measured" if half > line.sizes[-1] else beyond
    return f"time = {latency} + {rate} {within}; half that rate at {_size(half)}{beyond}"


def _piece(piece: SizePiece) -> str:
    terms = [_time(piece.latency)] if piece.latency else []
    terms += [f"bytes ÷ {_rate(piece.bandwidth)}"] if piece.bandwidth else []
    return f"{' + '.join(terms)} at {range_of(format_size, (piece.least, piece.most))}"


def _within(error: float) -> str:
    return f"within {max(error, LEAST_SHOWN):.1%}"


def _size(size: float) -> str:
    return approximate_size(round(size))


_TIMES = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns"))


def _time(seconds: float) -> str:
    scale, unit = next((one for one in _TIMES if seconds >= one[0]), _TIMES[-1])
    return f"{seconds / scale:.2f} {unit}"


def _rate(rate: float) -> str:
    return f"{format_decimals(rate, BANDWIDTH.symbol)} {BANDWIDTH.shown}"

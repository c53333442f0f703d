"""What a run measured at several sizes: a curve for each path, and the line that fits it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from statistics import median

from rich.console import Group, RenderableType
from rich.text import Text

from linkgauge.model.curves import SizeLine
from linkgauge.model.result import Result, Run
from linkgauge.model.stats.hockney import LEAST, OFF
from linkgauge.model.transfer import Place
from linkgauge.model.units import BANDWIDTH, approximate_size, format_size, unit_of

from .folding import Entry
from .matrix import Matrix, shown
from .run_text import MOST_COLUMNS, UNKNOWN, hanging, matrix_lines, simulated, where

MOST_PATHS = 16
"""Of more paths, the lowest, the median and the highest figures are shown."""
UNTOLD = "these sizes do not separate latency from bandwidth"
LEAST_SHOWN = 0.001
"""A line that is closer to the times is said to be within this."""
EXTREMES: dict[str, Callable[[list[float]], float]] = {
    "lowest": min,
    "median": median,
    "highest": max,
}

Curves = dict[str, dict[int, float]]
"""Figures by size, by path."""


def sweep_lines(run: Run) -> Iterator[RenderableType]:
    """A block for each benchmark that was measured at several sizes, in the order of the run."""
    for benchmark, backend in dict.fromkeys((one.benchmark, one.backend) for one in run.results):
        own = (benchmark, backend)
        results = [one for one in run.results if (one.benchmark, one.backend) == own]
        lines = [one for one in run.lines if (one.benchmark, one.backend) == own]
        curves = curves_of(results)
        several = len({size for curve in curves.values() for size in curve}) >= LEAST
        if several or lines:
            block = _curve_lines(results[0], curves) if several else ()
            sizes = (
                {size for curve in curves.values() for size in curve}
                if several
                else {size for line in lines for size in line.sizes}
            )
            yield Group(
                _heading(results[0], sizes), *block, *map(hanging, line_lines(lines)), Text()
            )


def _heading(result: Result, sizes: set[int]) -> Text:
    ends = " to ".join(map(format_size, (min(sizes), max(sizes))))
    heading = Text.assemble((result.benchmark, "bold"), where(result, ends))
    return heading.append("  ").append(simulated()) if result.simulated else heading


def _name(row: str, column: str | None) -> str:
    return row if column is None else f"{row}, {column}"


def curves_of(results: Sequence[Result]) -> Curves:
    """Of a size that was measured several times, the last figure."""
    curves: Curves = {}
    for result in results:
        for cell in result.cells:
            if cell.headline is not None:
                curves.setdefault(_name(*cell.place), {})[result.size] = cell.headline
    return curves


def _curve_lines(result: Result, curves: Curves) -> Iterator[RenderableType]:
    """The curves as a matrix, path by size; turned if the sizes are many."""
    unit = unit_of(result.unit)
    sizes = sorted({size for curve in curves.values() for size in curve})
    what = "row, column"
    if len(curves) > MOST_PATHS:
        what, curves = f"of {len(curves)} paths", extremes(curves, sizes)
    yield Text(f"{result.title} {unit.quantity} ({unit.shown}), {what} by size")
    figures = {
        Place(path, format_size(size)): figure
        for path, curve in curves.items()
        for size, figure in curve.items()
    }
    columns = tuple(map(format_size, sizes))
    matrix = Matrix(result.benchmark, tuple(curves), columns, figures, None, len(figures))
    entry = partial(_entry, figures, result.unit)
    yield from matrix_lines(matrix, entry, turned=len(sizes) > MOST_COLUMNS)


def _entry(figures: dict[Place, float], unit: str, at: Place) -> Entry:
    return Entry(shown(figures[at], unit)) if at in figures else UNKNOWN


def extremes(curves: Curves, sizes: Sequence[int]) -> Curves:
    """The lowest, the median and the highest figure of each size."""
    of_size = {size: [curve[size] for curve in curves.values() if size in curve] for size in sizes}
    return {
        name: {size: of(figures) for size, figures in of_size.items()}
        for name, of in EXTREMES.items()
    }


def line_lines(lines: Sequence[SizeLine], most: int = MOST_PATHS) -> Iterator[Text]:
    """The line of each path; of more than `most`, what they have in common."""
    if len(lines) > most:
        yield from _common(lines)
        return
    names = [_name(line.row, line.column) for line in lines]
    width = max(map(len, names), default=0)
    for name, line in zip(names, lines, strict=True):
        yield Text.assemble((f"{name:>{width}}  ", "cyan"), _sentence(line))


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


def _common(lines: Sequence[SizeLine]) -> Iterator[Text]:
    known = [line for line in lines if line.half_size is not None]
    if known:
        each = (
            _ends("latency", [(line.latency or 0.0, _time(line.latency)) for line in known]),
            _ends("bandwidth", [(line.bandwidth or 0.0, _rate(line.bandwidth)) for line in known]),
            _ends("half of it at", [(line.half_size or 0.0, _half(line)) for line in known]),
            _within(max(line.error for line in known)),
        )
        yield Text.assemble((_paths(len(known)), "cyan"), ", ".join(each))
    others = Counter(_kind(line) for line in lines if line.half_size is None)
    for kind, count in others.items():
        yield Text.assemble((_paths(count), "cyan"), kind)


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

"""What is said of products of matrices and of the best of a few copies besides their figures: the
time of a product, the state of the devices meanwhile, and how much the samples differ."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from linkgauge.model.inventory import Reading
from linkgauge.model.matmul import PRODUCTS, operations_of, order_of
from linkgauge.model.result import CellResult, Result
from linkgauge.model.transfer import BEST_OF, Place, Report

from .blocks import Line, Span, line
from .matrix import Matrix

_MILLI = 1e-3
_MHZ = 1e6


def more_matrices(result: Result) -> Iterator[tuple[str, Matrix]]:
    """Matrices that stand below the figures, with their titles."""
    operations = operations_of(order_of(result.size))

    def milliseconds(cell: CellResult) -> float | None:
        rate = cell.headline if cell.operation in PRODUCTS else None
        return operations / rate / _MILLI if rate else None

    yield from _matrix(result, "time of a product (ms)", milliseconds)
    yield from _matrix(result, f"spread of the {BEST_OF} (% of the best)", spread)


def spread(cell: CellResult) -> float | None:
    """(best - worst) ÷ best, in percent; None of a cell that does not report the best."""
    if cell.report is not Report.BEST or cell.summary is None:
        return None
    return 100 * (cell.summary.max - cell.summary.min) / cell.summary.max


def _matrix(
    result: Result, title: str, figure: Callable[[CellResult], float | None]
) -> Iterator[tuple[str, Matrix]]:
    known = ((cell.place, figure(cell)) for cell in result.cells)
    figures: dict[Place, float] = {place: value for place, value in known if value is not None}
    if figures:
        rows = tuple(dict.fromkeys(cell.row for cell in result.cells))
        columns = tuple(dict.fromkeys(cell.column for cell in result.cells))
        yield title, Matrix(result.benchmark, rows, columns, figures, None, len(figures))


def state_lines(result: Result) -> Iterator[Line]:
    """A line for each row of products: clocks, power and temperature of its devices meanwhile, and
    what throttled them."""
    yield from _row_lines(result, _parts, _throttled)


def throttled_lines(result: Result) -> Iterator[Line]:
    """A line for each row of products whose devices were throttled."""
    yield from _row_lines(result, _throttled)


def _row_lines(result: Result, *said_of: Callable[[Sequence[Reading]], Span]) -> Iterator[Line]:
    for row in dict.fromkeys(cell.row for cell in result.cells if cell.operation in PRODUCTS):
        cells = (cell for cell in result.cells if cell.row == row)
        readings = [reading for cell in cells for reading in cell.readings if reading.count]
        said = [say(readings) for say in said_of]
        if any(span.text for span in said):
            parts = [span for one in said if one.text for span in (Span("; "), one)]
            yield line(Span(f"{row} ", "name"), *parts[1:])


def _parts(readings: Sequence[Reading]) -> Span:
    return Span(", ".join(_figures(readings)), "dim")


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


def _throttled(readings: Sequence[Reading]) -> Span:
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
    return Span(f"throttled: {', '.join(named)}" if named else "", "warn")

"""Arranges a result as matrices, in nvbandwidth's layout or in others, and formats figures."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from itertools import product
from operator import attrgetter
from statistics import median

import msgspec

from linkgauge.model.documents.result import CellResult, Result
from linkgauge.model.grouped import grouped, tabled
from linkgauge.model.operations.operation import operations_of, order_of
from linkgauge.model.operations.overlap import time_together
from linkgauge.model.transfer import BEST_OF, Place, Report
from linkgauge.model.units import BANDWIDTH, unit_of


class Matrix(msgspec.Struct, frozen=True):
    """A matrix of figures, in the unit that `name` states, or the base unit. `total` is the sum of
    bandwidths. `cells` counts all cells, even without a figure. `part` is one of `Result.parts`."""

    name: str
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    figures: Mapping[Place, float]
    total: float | None = None
    cells: int = 0
    part: str = ""


def matrices(result: Result) -> Iterator[Matrix]:
    rows = tuple(dict.fromkeys(cell.row for cell in result.cells))
    columns = tuple(dict.fromkeys(cell.column for cell in result.cells))
    if result.sampled is not None:
        rows, columns = in_order(rows), in_order(columns)
    elif set(rows) == set(columns):
        rows = columns = in_order(rows)
    not_sampled = result.sampled.all - result.sampled.pairs if result.sampled is not None else 0
    figured = tabled(
        (part.transfer, cell.place, part.summary.median)
        for cell in (result.cells if result.parts else ())
        for part in cell.parts
        if part.summary is not None
    )
    counts = [len(cell.transfers) for cell in result.cells]
    found = [
        (name, figured.get(number, {}), sum(number < count for count in counts))
        for number, name in enumerate(result.parts)
    ]
    headline = {cell.place: value for cell in result.cells if (value := cell.headline) is not None}
    found.append(("total" if result.parts else "", headline, len(result.cells)))
    adds_up = not result.sweep and unit_of(result.unit).better == "higher"
    for part, figures, there in found:
        cells = there + not_sampled
        total = sum(figures.values()) if figures and adds_up else None
        name = f"{result.benchmark}_{part}" if part else result.benchmark
        yield Matrix(name, rows, columns, figures, total, cells, part)


def matrix_of(name: str, figures: Mapping[Place, float]) -> Matrix:
    rows, columns = (tuple(dict.fromkeys(axis)) for axis in zip(*figures, strict=True))
    if all(label.isdecimal() for label in (*rows, *columns)):
        rows, columns = in_order(rows), in_order(columns)
    return Matrix(name, rows, columns, figures)


def of_cells(
    result: Result, name: str, figure: Callable[[CellResult], float | None]
) -> Iterator[Matrix]:
    figures = {cell.place: value for cell in result.cells if (value := figure(cell)) is not None}
    if figures:
        yield matrix_of(name, figures)


def in_order(labels: Iterable[str]) -> tuple[str, ...]:
    """Sorts labels: first numbers by value, then other labels alphabetically."""
    return tuple(sorted(labels, key=_natural))


def _natural(label: str) -> tuple[int, str]:
    return (int(label), "") if label.isdecimal() and len(label) < 10 else (1 << 62, label)


_MILLI, _MICRO = 1e-3, 1e-6
_LOOPS = ("copies alone (µs)", "the kernel alone (µs)", "both at once (µs)")
_TOKENS = ("request", "first token", "between tokens")


def concurrent_matrices(result: Result) -> Iterator[Matrix]:
    if len(result.cells) == 1:
        yield from _own(result)
    if result.sweep:
        yield from _each(result)
    known: dict[str, Callable[[CellResult], float | None]] = {}
    reports = set(map(attrgetter("report"), result.cells))
    if any(cell.does.product is not None for cell in result.cells):
        operations = operations_of(order_of(result.size))
        known["time of a product (ms)"] = partial(_of_product, operations)
    if Report.BEST in reports:
        known[f"spread of the {BEST_OF} (% of the best)"] = _spread
    if Report.HIDDEN in reports:
        known |= {name: partial(_of_loop, number) for number, name in enumerate(_LOOPS)}
    if any(cell.work is not None for cell in result.cells):
        for name, percent in product(_TOKENS, ("p50", "p99")):
            known[f"{name}, {percent} (ms)"] = partial(_of_tokens, name, percent)
    if any(report.is_latency for report in reports):
        known[f"bandwidth of the load meanwhile ({BANDWIDTH.shown})"] = load
    for name, figure in known.items():
        yield from of_cells(result, name, figure)


def _of_product(operations: float, cell: CellResult) -> float | None:
    rate = cell.headline if cell.does.product is not None else None
    return operations / rate / _MILLI if rate else None


def _spread(cell: CellResult) -> float | None:
    if cell.report is not Report.BEST or cell.summary is None:
        return None
    return 100 * (cell.summary.max - cell.summary.min) / cell.summary.max


def _of_loop(number: int, cell: CellResult) -> float | None:
    """Returns a median in µs: of copies (`number` 0), of the kernel (1), of both at once (2)."""
    if cell.report is not Report.HIDDEN or not cell.parts or not cell.samples:
        return None
    computing, *others = (part.samples for part in cell.parts)
    copying = [max(own) for own in zip(*others, strict=True)]
    together = map(time_together, computing, copying, cell.samples)
    times = (copying, computing, list(together))
    return float(median(times[number])) / _MICRO


def _of_tokens(name: str, percent: str, cell: CellResult) -> float | None:
    stages = cell.work.stages if cell.work is not None else ()
    found = (one.summary for one in stages if one.name == name and one.summary)
    summary = next(found, None)
    return None if summary is None else float(getattr(summary, percent)) / _MILLI


def load(cell: CellResult) -> float | None:
    """Returns the total GB/s of copies that load a link while its latency is measured, or None."""
    if not cell.report.is_latency:
        return None
    rates = [part.summary.median for part in cell.parts[1:] if part.summary is not None]
    return sum(rates) / BANDWIDTH.scale if rates else None


def _own(result: Result) -> Iterator[Matrix]:
    """Yields a matrix with the rate of each transfer, or each device, of a result's only cell."""
    if result.sweep or result.cells[0].report is not Report.TOTAL:
        return
    (cell,), unit = result.cells, unit_of(result.unit)
    if not cell.parts or not all(one.engine.owner.is_device for one in cell.transfers):
        return
    name, places = _own_name(result), _by_ends(cell)
    figures = {
        places[part.transfer]: part.summary.median / unit.scale
        for part in cell.parts
        if part.summary is not None
    }
    if cell.definition == "serial":
        name, figures = _own_name(result, "device"), _of_devices(cell, unit.scale)
    yield matrix_of(name, figures)


def _own_name(result: Result, whose: str = "transfer") -> str:
    unit = unit_of(result.unit)
    return f"each {whose}'s own {unit.quantity} ({unit.shown})"


def _by_ends(cell: CellResult) -> list[Place]:
    ends = [(one.source.label, one.destination.label) for one in cell.transfers]
    if len({source for source, _ in ends}) < len(ends):
        return [Place(*both) for both in ends]
    return [Place(f"{source}->{destination}", cell.column) for source, destination in ends]


def _of_devices(cell: CellResult, scale: float) -> dict[Place, float]:
    found = grouped(
        (cell.transfers[part.transfer].engine.owner, (part.bytes, part.bytes / part.summary.median))
        for part in cell.parts
        if part.summary is not None
    )
    return {
        Place(cell.row, owner.label): sum(moved for moved, _ in own)
        / max(t for _, t in own)
        / scale
        for owner, own in sorted(found.items(), key=lambda one: one[0].index or 0)
    }


def _each(result: Result) -> Iterator[Matrix]:
    if not any(cell.transfers[1:] for cell in result.cells):
        return
    counted = filter(_is_counted, result.cells)
    rates = grouped((cell.column, rate) for cell in counted for rate in _rates(cell))
    figures = {
        Place(word, column): pick(own) / unit_of(result.unit).scale
        for word, pick in (("slowest", min), ("fastest", max))
        for column, own in rates.items()
    }
    if figures:
        yield matrix_of(_own_name(result), figures)


def _is_counted(cell: CellResult) -> bool:
    by_devices = all(transfer.engine.owner.is_device for transfer in cell.transfers)
    counts = cell.column == str(len(cell.transfers))
    return cell.report is Report.TOTAL and by_devices and counts


def _rates(cell: CellResult) -> list[float]:
    own = [part.summary.median for part in cell.parts if part.summary is not None]
    return own if own or cell.headline is None else [cell.headline]

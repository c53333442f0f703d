"""What is said of copies at the same time besides their aggregate: each one's own bandwidth."""

from __future__ import annotations

from collections.abc import Iterator

from linkgauge.model.memory import Memory
from linkgauge.model.result import CellResult, Result
from linkgauge.model.transfer import Place, Report
from linkgauge.model.units import Unit, unit_of

from .matrix import Matrix, in_order


def own_matrix(result: Result) -> Iterator[tuple[str, Matrix]]:
    """Beside a single total of copies by devices, in the unit as it is shown: each copy's own rate,
    source by destination, or a row for each where no device has several. Where copies of a device
    ran one after another, each device's: its bytes over the time until its last copy ended. Nothing
    of other results."""
    if result.sweep or len(result.cells) != 1 or result.cells[0].report is not Report.TOTAL:
        return
    (cell,) = result.cells
    if not cell.parts or not all(one.engine.owner.is_device for one in cell.transfers):
        return
    unit = unit_of(result.unit)
    if cell.definition == "serial":
        figures = _of_devices(result, cell)
        columns = tuple(place.column for place in figures)
        title = f"each device's own {unit.quantity} ({unit.shown})"
        yield title, Matrix(result.benchmark, (cell.row,), columns, figures, None, len(figures))
        return
    places = _by_ends(cell)
    figures = {
        places[part.transfer]: part.summary.median / unit.scale
        for part in cell.parts
        if part.summary is not None
    }
    rows = tuple(dict.fromkeys(place.row for place in places))
    columns = in_order({place.column for place in places})
    if set(columns) == set(rows):
        rows = columns
    yield _own_title(unit), Matrix(result.benchmark, rows, columns, figures, None, len(places))


def _by_ends(cell: CellResult) -> list[Place]:
    """The place of each transfer."""
    ends = [(one.source.label, one.destination.label) for one in cell.transfers]
    if len({source for source, _ in ends}) < len(ends):
        return [Place(*both) for both in ends]
    return [Place(f"{source}->{destination}", cell.column) for source, destination in ends]


def _of_devices(result: Result, cell: CellResult) -> dict[Place, float]:
    """By device, in the order of its number."""
    moved: dict[Memory, int] = {}
    until: dict[Memory, float] = {}
    for part in cell.parts:
        if part.summary is not None:
            owner = cell.transfers[part.transfer].engine.owner
            moved[owner] = moved.get(owner, 0) + part.bytes
            until[owner] = max(until.get(owner, 0.0), part.bytes / part.summary.median)
    scale = unit_of(result.unit).scale
    return {
        Place(cell.row, owner.label): moved[owner] / until[owner] / scale
        for owner in sorted(moved, key=lambda one: one.index or 0)
    }


def each_matrix(result: Result) -> Iterator[tuple[str, Matrix]]:
    """The slowest and the fastest copy by how many there were, whatever their row, in the unit as
    it is shown; nothing of results that are no sweep over that."""
    unit = unit_of(result.unit)
    rates: dict[str, list[float]] = {}
    for cell in result.cells:
        if _is_counted(result, cell):
            rates.setdefault(cell.column, []).extend(_rates(cell))
    if not any(map(_is_shared, result.cells)) or not any(rates.values()):
        return
    figures = {
        Place(word, column): pick(own) / unit.scale
        for word, pick in (("slowest", min), ("fastest", max))
        for column, own in rates.items()
        if own
    }
    rows = tuple(dict.fromkeys(place.row for place in figures))
    yield (
        _own_title(unit),
        Matrix(result.benchmark, rows, tuple(rates), figures, None, len(figures)),
    )


def _own_title(unit: Unit) -> str:
    return f"each one's own {unit.quantity} ({unit.shown})"


def _is_shared(cell: CellResult) -> bool:
    return len(cell.transfers) > 1


def _is_counted(result: Result, cell: CellResult) -> bool:
    """Whether the column is the number of copies by devices."""
    by_devices = all(transfer.engine.owner.is_device for transfer in cell.transfers)
    counts = cell.column == str(len(cell.transfers))
    return result.sweep and cell.report is Report.TOTAL and by_devices and counts


def _rates(cell: CellResult) -> list[float]:
    """Each copy's, of which a single one is the headline itself."""
    own = [part.summary.median for part in cell.parts if part.summary is not None]
    return own if own or cell.headline is None else [cell.headline]

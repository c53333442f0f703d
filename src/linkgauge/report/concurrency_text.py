"""What is said of copies at the same time besides their aggregate: each one's own bandwidth."""

from __future__ import annotations

from collections.abc import Iterator

from linkgauge.model.result import CellResult, Result
from linkgauge.model.transfer import Place, Report
from linkgauge.model.units import unit_of

from .matrix import Matrix


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
    title = f"each one's own {unit.quantity} ({unit.shown})"
    yield title, Matrix(result.benchmark, rows, tuple(rates), figures, None, len(figures))


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

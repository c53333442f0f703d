"""What is said of copies beside a kernel besides the share that is hidden: the times it is formed
of."""

from __future__ import annotations

from collections.abc import Iterator
from statistics import median
from typing import NamedTuple

from linkgauge.model.overlap import time_together
from linkgauge.model.result import CellResult, Result
from linkgauge.model.transfer import Place, Report

from .matrix import Matrix

_MICRO = 1e-6


class _Times(NamedTuple):
    """Medians, in seconds of a loop."""

    copying: float
    computing: float
    together: float


_TITLES = ("copies alone (µs)", "the kernel alone (µs)", "both at once (µs)")


def time_matrices(result: Result) -> Iterator[tuple[str, Matrix]]:
    """The times of a loop; nothing of results that report no share that is hidden."""
    times = {cell.place: found for cell in result.cells if (found := _times(cell)) is not None}
    if not times:
        return
    rows = tuple(dict.fromkeys(cell.row for cell in result.cells))
    columns = tuple(dict.fromkeys(cell.column for cell in result.cells))
    for number, title in enumerate(_TITLES):
        figures: dict[Place, float] = {at: own[number] / _MICRO for at, own in times.items()}
        yield title, Matrix(result.benchmark, rows, columns, figures, None, len(figures))


def _times(cell: CellResult) -> _Times | None:
    if cell.report is not Report.HIDDEN or not cell.parts or not cell.samples:
        return None
    computing, *others = (part.samples for part in cell.parts)
    copying = [max(own) for own in zip(*others, strict=True)]
    together = map(time_together, computing, copying, cell.samples)
    return _Times(median(copying), median(computing), median(together))

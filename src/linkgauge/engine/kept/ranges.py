"""Recomputes the confidence intervals of a stored run: runs of all versions follow one rule."""

from __future__ import annotations

from collections.abc import Hashable, Iterator

from msgspec.structs import replace

from linkgauge.engine.enough import class_of
from linkgauge.engine.measuring.merging import with_ranges
from linkgauge.model.documents.result import CellResult, Run
from linkgauge.model.grouped import grouped

_Position = tuple[int, int]


def with_todays_ranges(run: Run) -> Run:
    """Returns the run with intervals by this version's rule. A change sets `ranges` to "anew"."""
    found = with_ranges_of(run)
    return found if _ranges(found) == _ranges(run) else replace(found, ranges="anew")


def with_ranges_of(run: Run) -> Run:
    """Recomputes confidence intervals from samples, repetitions and the deviation between earlier
    runs. A figure without recorded repetitions keeps its interval."""
    equivalent, known = grouped(_cells(run)), run.between_runs or None
    anew: dict[_Position, CellResult] = {}
    for some in equivalent.values():
        places, cells = zip(*some, strict=True)
        anew.update(zip(places, with_ranges(cells, run.settings, known), strict=True))
    if not anew:
        return run
    results = tuple(
        replace(
            result,
            cells=tuple(anew.get((number, at), cell) for at, cell in enumerate(result.cells)),
        )
        for number, result in enumerate(run.results)
    )
    return replace(run, results=results)


def _cells(run: Run) -> Iterator[tuple[Hashable, tuple[_Position, CellResult]]]:
    for number, result in enumerate(run.results):
        for at, cell in enumerate(result.cells):
            if cell.samples and cell.repetitions and cell.summary is not None:
                yield class_of(result, cell), ((number, at), cell)


def _ranges(run: Run) -> list[tuple[float, float] | None]:
    cells = (cell for result in run.results for cell in result.cells)
    return [cell.summary.ci95 for cell in cells if cell.summary is not None]

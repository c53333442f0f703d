"""Cells whose figures are far from those of their peers, whether or not anything is expected of
them."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from itertools import count

from msgspec.structs import replace

from linkgauge.model.result import CellResult, Result

from .cases import Case, each_case
from .findings import Evidence

FAR = 0.75
"""A figure below this part of its peers' median, or above as much more, is far from it: a path that
lost half of its lanes or links is."""
MOST_UNSURE = 2
"""Of no more cells, a fast one shows only that the other is slow."""


def with_peers(evidence: Evidence) -> tuple[Result, ...]:
    """The results, with the median of the peers of each cell that is far from it."""
    known: dict[tuple[str, ...], list[Case]] = {}
    for case in each_case(evidence):
        if case.alike is not None and case.cell.headline and case.cell.status == "pass":
            known.setdefault(case.alike, []).append(case)
    far = {case.number: peers for alike in known.values() for case, peers in _far(alike)}
    if not far:
        return evidence.results
    numbers = count()
    return tuple(
        replace(result, cells=tuple(_marked(cell, far.get(next(numbers))) for cell in result.cells))
        for result in evidence.results
    )


def _marked(cell: CellResult, peers: float | None) -> CellResult:
    return cell if peers is None else replace(cell, peers=peers)


def _far(alike: Sequence[Case]) -> Iterator[tuple[Case, float]]:
    """Those whose whole interval is far from the median of the others, with that. Of two alone, the
    slower one."""
    figures = sorted(_figure(case) for case in alike)
    if len(figures) == 1:
        return
    for case in alike:
        peers = _median_without(_figure(case), figures)
        low, high = _interval(case.cell)
        is_below, is_above = high < FAR * peers, low * FAR > peers
        is_slow = is_below if case.result.better == "higher" else is_above
        if is_slow or (len(alike) > MOST_UNSURE and (is_below or is_above)):
            yield case, peers


def _median_without(figure: float, figures: Sequence[float]) -> float:
    """The median of sorted figures but for this one of them."""
    place, left = bisect_left(figures, figure), len(figures) - 1
    middle = (left - 1) // 2, left // 2
    return sum(figures[at + (at >= place)] for at in middle) / 2


def _figure(case: Case) -> float:
    return case.cell.headline or 0.0


def _interval(cell: CellResult) -> tuple[float, float]:
    figure = cell.headline or 0.0
    ends = cell.summary.ci95 if cell.summary is not None else None
    low, high = ends or (figure, figure)
    return min(low, figure), max(high, figure)

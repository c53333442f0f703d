"""Cells whose figures are far from those of their peers, whether or not anything is expected of
them."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Hashable, Iterator, Mapping, Sequence
from itertools import count
from statistics import median

from msgspec.structs import replace

from linkgauge.model.grouped import grouped
from linkgauge.model.result import CellResult, Expected, NotJudged, Result

from .cases import Case, each_case
from .findings import Evidence

FAR = 0.75
"""A figure below this part of its peers' median, or above as much more, is far from it: a path that
lost half of its lanes or links is."""
MOST_UNSURE = 2
"""Of no more cells, a fast one shows only that the other is slow."""
ENOUGH = 4
"""Of so many equal cells, each is judged by their median: one of them may be slow."""
_UNLIMITED: tuple[NotJudged, ...] = ("no-limit", "path", "bound", "start")
"""Why nothing else is expected of cells that are judged by their peers."""


def with_peers(evidence: Evidence) -> tuple[Result, ...]:
    """The results. A cell that is far from its peers has their median beside it; one that nothing
    else can be expected of is judged by theirs."""
    nodes = {cpu: node.index for node in evidence.machine.host.nodes for cpu in node.cpus}
    known = grouped(
        (_class(case, nodes), case)
        for case in each_case(evidence)
        if case.cell.headline and case.cell.status == "pass"
    )
    found = {case.number: cell for alike in known.values() for case, cell in _beside(alike)}
    if not found:
        return evidence.results
    numbers = count()
    return tuple(
        replace(result, cells=tuple(found.get(next(numbers), cell) for cell in result.cells))
        for result in evidence.results
    )


def _class(case: Case, nodes: Mapping[int, int]) -> Hashable:
    """Equal for peers. Of a sweep, these are cells of the same setting on other parts; of pairs of
    CPUs, all those of the same two nodes."""
    if case.alike is not None:
        return case.alike
    ends = case.cell.transfers[0].memories
    if ends and all(end.space == "cpu" for end in ends):
        return case.kind, *sorted(nodes.get(end.index or 0, -1) for end in ends)
    return case.kind, case.cell.operation, case.cell.column


def _beside(alike: Sequence[Case]) -> Iterator[tuple[Case, CellResult]]:
    """Those of which their peers tell anything."""
    figures = sorted(_figure(case) for case in alike)
    if len(alike) == 1:
        return
    usual = median(figures)
    for case in alike:
        others = _median_without(_figure(case), figures)
        if case.alike is not None and _is_far(case, others, len(alike)):
            yield case, replace(case.cell, peers=others)
        elif (
            len(alike) >= ENOUGH
            and case.cell.not_judged in _UNLIMITED
            and FAR * usual <= _figure(case) <= usual / FAR
        ):
            yield case, _as_peers(case.cell, usual, len(alike))


def _is_far(case: Case, peers: float, count: int) -> bool:
    """Whether its whole interval is far from the median of its peers. Of two alone, only the slower
    one is."""
    low, high = _interval(case.cell)
    is_below, is_above = high < FAR * peers, low * FAR > peers
    is_slow = is_below if case.result.better == "higher" else is_above
    return is_slow or (count > MOST_UNSURE and (is_below or is_above))


def _as_peers(cell: CellResult, usual: float, count: int) -> CellResult:
    theoretical = cell.expected.theoretical if cell.expected is not None else None
    because = f"the median of {count} equal cells"
    expected = Expected(theoretical, usual, because, measured=True, peers=count)
    return replace(cell, expected=expected, verdict="ok", not_judged=None)


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

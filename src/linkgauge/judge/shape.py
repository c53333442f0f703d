"""Finds patterns in tables and curves of figures. A pattern is no failure: it shows how the machine
is built, or where to look."""

from __future__ import annotations

import itertools
import math
import statistics
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Sequence
from operator import itemgetter
from typing import NamedTuple

from linkgauge.judge.blame.cases import Case, cases_of
from linkgauge.model.cell_id import ends_of, spoken
from linkgauge.model.documents.result import CellResult, Result
from linkgauge.model.grouped import grouped
from linkgauge.model.names import range_of
from linkgauge.model.units import format_size, unit_of

from .findings import Evidence, Finding
from .size_lines import at_sizes

ASYMMETRIC = 0.9
"""Two directions differ if one figure is below this share of the other."""
_APART = 1.25
"""The least ratio between two levels of figures that form classes."""
_TIGHT = 0.05
"""The most by which the figures within a class may differ, relative to it."""
PLATEAU = 0.85
"""The share of its peak that a curve should keep at the largest sizes."""
_LEAST = 3
_KNEE = 0.5
"""The share of the slope before a knee that remains behind it."""


def _figure(cell: CellResult) -> float | None:
    return cell.summary.median if cell.summary and cell.summary.median > 0 else None


def _shown(figure: float, result: Result) -> str:
    unit = unit_of(result.unit)
    return f"{figure / unit.scale:.4g} {unit.shown}"


def check_directions(evidence: Evidence) -> Iterator[Finding]:
    by_result = grouped((id(case.result), case) for case in cases_of(evidence))
    for cases in by_result.values():
        if cases[0].result.better == "higher" and not cases[0].result.sweep:
            yield from _directions(cases[0].result, cases)


def _directions(result: Result, cases: Sequence[Case]) -> Iterator[Finding]:
    by_place = {(case.cell.row, case.cell.column): case for case in cases}
    one_sided: list[tuple[float, CellResult, float, float]] = []
    pairs = 0
    for (row, column), case in by_place.items():
        back, cell = by_place.get((column, row)), case.cell
        if row == column or back is None or cell.definition != back.cell.definition:
            continue
        # Nodes of unequal memory or numbers of CPUs are not as fast both ways.
        if case.equivalent != back.equivalent and sorted(case.equivalent or ()) != sorted(
            back.equivalent or ()
        ):
            continue
        mine, theirs = _figure(cell), _figure(back.cell)
        if mine is not None and theirs is not None:
            pairs += 1
            if mine < ASYMMETRIC * theirs:
                one_sided.append((mine / theirs, cell, mine, theirs))
    if not one_sided:
        return
    share, cell, mine, theirs = min(one_sided, key=lambda found: found[0])
    found = (
        f"{result.benchmark}: {len(one_sided)} of {pairs // 2} pairs are slower one way; "
        f"{ends_of(cell)} has {_shown(mine, result)}, the way back "
        f"{_shown(theirs, result)} ({share:.0%})"
    )
    why = "links are as fast both ways, so something slows one direction"
    cells = _named(result, [cell for _, cell, _, _ in one_sided])
    yield Finding("directions", "note", str(cell), found, why, cells=cells)


def _named(result: Result, cells: Sequence[CellResult]) -> tuple[str, ...]:
    return tuple(spoken(result, cell) for cell in cells)


def check_classes(evidence: Evidence) -> Iterator[Finding]:
    """Reports pairs whose figures form two groups, such as pairs with one link and with two."""
    for result in evidence.results:
        if result.sweep or result.better != "higher" or len(result.cells) < 6:
            continue
        figures = sorted(f for cell in result.cells if (f := _figure(cell)) is not None)
        levels = split_levels(figures)
        equivalent = len({cell.definition for cell in result.cells if cell.summary}) == 1
        if levels is None or not equivalent or not _by_pairs(result):
            continue
        low, high = levels
        ratio = high / low
        links = round(ratio)
        slower = [c for c in result.cells if (_figure(c) or high) < math.sqrt(low * high)]
        if _share_a_place(slower):
            continue  # a slow row or column is a device's, which is slow_parts.py's matter
        faster = [c for c in result.cells if (_figure(c) or 0.0) > math.sqrt(low * high)]
        least, most = _shown(low, result), _shown(high, result)
        found = f"two classes of pairs: {len(slower)} cells at {least}, {len(faster)} at {most}"
        if links >= 2 and abs(ratio / links - 1) <= _TIGHT:
            found += (
                f", {links} × {least}: {links} times as many links or routes join the faster pairs"
            )
        else:
            found += f" ({ratio:.2f} times)"
        why = "some pairs are better joined: put what communicates most on those"
        name, cells = result.benchmark, _named(result, faster)
        yield Finding("classes", "note", name, found, why, cells=cells)


def _by_pairs(result: Result) -> bool:
    rows = {cell.row for cell in result.cells}
    columns = {cell.column for cell in result.cells}
    return len(rows) > 2 and rows == columns


def _share_a_place(cells: Sequence[CellResult]) -> bool:
    return bool(set.intersection(*({cell.row, cell.column} for cell in cells)))


def split_levels(figures: Sequence[float]) -> tuple[float, float] | None:
    """Returns the medians of two groups of ascending figures, or None without two groups."""
    if len(figures) < 6:
        return None
    gaps = [later / earlier for earlier, later in itertools.pairwise(figures)]
    place = max(range(len(gaps)), key=gaps.__getitem__) + 1
    low, high = figures[:place], figures[place:]
    if gaps[place - 1] < _APART or min(len(low), len(high)) < 2:
        return None
    if any(part[-1] / part[0] > 1 + 2 * _TIGHT for part in (low, high)):
        return None
    return statistics.median(low), statistics.median(high)


Point = tuple[float, float, Case]
"""A size or a setting, the figure, and the cell."""


def curves(evidence: Evidence) -> Iterator[list[Point]]:
    """Yields curves: cells measured at three sizes or more, and the rows of sweeps."""
    several = at_sizes(evidence.results, _LEAST)
    found = grouped(
        (_curve_of(case), (setting, figure, case))
        for case in cases_of(evidence)
        if case.result.better == "higher" and (figure := _figure(case.cell)) is not None
        and (setting := _setting(case, several)) is not None
    )  # fmt: skip
    for points in found.values():
        if len({setting for setting, *_ in points}) >= _LEAST:
            yield sorted(points, key=itemgetter(0))


def _curve_of(case: Case) -> Hashable:
    result, cell = case.result, case.cell
    if result.sweep:
        return id(result), cell.row
    return result.benchmark, result.backend, cell.row, cell.column, cell.definition


def _setting(case: Case, several: Collection[tuple[str, str]]) -> float | None:
    if not case.result.sweep:
        return case.result.size if (case.result.benchmark, case.result.backend) in several else None
    try:
        return float(case.cell.column)
    except ValueError:
        threads = [transfer.engine.count for transfer in case.cell.transfers]
        return threads[0] if threads and threads[0] else None


class _Bend(NamedTuple):
    at: str
    figure: float
    share: float
    points: Sequence[Point]

    @property
    def result(self) -> Result:
        return self.points[0][2].result

    @property
    def name(self) -> str:
        _, _, case = self.points[0]
        where = f"row {case.cell.row}" if self.result.sweep else ", ".join(case.cell.place)
        return f"{self.result.benchmark} ({where})"

    @property
    def cells(self) -> Iterator[str]:
        for at, _, case in self.points:
            yield case.name if self.result.sweep else f"{case.name} at {format_size(int(at))}"


def check_plateau(evidence: Evidence) -> Iterator[Finding]:
    why = (
        "small sizes may fit in a cache, and too many threads compete: the plateau is the "
        "sustained figure"
    )
    for equivalent in _bends(evidence, _plateau):
        share = range_of("{:.0%}".format, [bend.share for bend in equivalent])
        who = "the figures" if len(equivalent) == 1 else f"{len(equivalent)} curves"
        found = f"{who} settle at {_range(equivalent)}, {share} of their peak at {equivalent[0].at}"
        yield _bent("plateau", equivalent, found, why)


def _plateau(points: Sequence[Point]) -> _Bend | None:
    figures = [figure for _, figure, _ in points]
    peak = max(figures)
    tail = points[-2:] if len(figures) > 3 else points[-1:]
    settled = [figure for _, figure, _ in tail]
    if max(settled) >= PLATEAU * peak or figures.index(peak) >= len(figures) - len(tail):
        return None
    mean = statistics.fmean(settled)
    return _Bend(_shown_at(points[figures.index(peak)]), mean, mean / peak, tail)


def check_knee(evidence: Evidence) -> Iterator[Finding]:
    why = "beyond this point something else is the limit"
    for equivalent in _bends(evidence, _knee):
        who = "the figures" if len(equivalent) == 1 else f"the figures of {len(equivalent)} curves"
        found = f"{who} grow up to {equivalent[0].at} and hardly beyond: {_range(equivalent)}"
        yield _bent("knee", equivalent, found, why)


def _knee(points: Sequence[Point]) -> _Bend | None:
    place = knee([(setting, figure) for setting, figure, _ in points])
    if place is None:
        return None
    return _Bend(_shown_at(points[place]), points[place][1], 1.0, points[place : place + 1])


def _bends(
    evidence: Evidence, bend: Callable[[Sequence[Point]], _Bend | None]
) -> Iterable[list[_Bend]]:
    found = filter(None, map(bend, curves(evidence)))
    return grouped(
        ((one.result.benchmark, one.result.backend, one.at), one) for one in found
    ).values()


def _bent(check: str, equivalent: Sequence[_Bend], found: str, why: str) -> Finding:
    first = equivalent[0]
    name = first.name if len(equivalent) == 1 else first.result.benchmark
    cells = tuple(cell for bend in equivalent for cell in bend.cells)
    return Finding(check, "note", name, found, why, cells=cells)


def _range(equivalent: Sequence[_Bend]) -> str:
    result, figures = equivalent[0].result, [bend.figure for bend in equivalent]
    return range_of(lambda figure: _shown(figure, result), figures)


def _shown_at(point: Point) -> str:
    at, _, case = point
    return f"{at:g}" if case.result.sweep else format_size(int(at))


def knee(points: Sequence[tuple[float, float]]) -> int | None:
    """Returns the index of the point at which a curve stops growing, or None. On logarithmic axes,
    the slope is at least 0.5 before this point, and at most half as steep after it."""
    if len(points) < 4 or any(x <= 0 or y <= 0 for x, y in points):
        return None
    logs = [(math.log(x), math.log(y)) for x, y in points]
    before = _slopes(logs)
    if max(before) < 0.5:
        return None
    after = _slopes([(-x, -y) for x, y in reversed(logs)])[::-1]
    broken = [
        (before[place] - after[place], -place)
        for place in range(1, len(logs) - 1)
        if before[place] >= 0.5 and after[place] <= _KNEE * before[place]
    ]
    return -max(broken)[1] if broken else None


def _slopes(logs: Sequence[tuple[float, float]]) -> list[float]:
    """Returns for each point the median slope between all points up to it (Theil-Sen)."""
    found: list[float] = []
    slopes: list[float] = []
    for place, (x2, y2) in enumerate(logs):
        slopes += ((y2 - y1) / (x2 - x1) for x1, y1 in logs[:place] if x2 > x1)
        slopes.sort()
        found.append(statistics.median(slopes) if slopes else 0.0)
    return found

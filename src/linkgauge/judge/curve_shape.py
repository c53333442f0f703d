"""Finds plateaus and knees in curves of figures over sizes or settings."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Sequence
from operator import itemgetter
from typing import NamedTuple

from linkgauge.judge.blame.cases import Case, cases_of
from linkgauge.model.documents.result import Result
from linkgauge.model.grouped import grouped
from linkgauge.model.names import range_of
from linkgauge.model.units import format_size

from .findings import Evidence, Finding
from .shape import figure_of, shown
from .size_lines import at_sizes

PLATEAU = 0.85
"""The share of its peak that a curve should keep at the largest sizes."""
_LEAST = 3
_KNEE = 0.5
"""The share of the slope before a knee that remains behind it."""


Point = tuple[float, float, Case]
"""A size or a setting, the figure, and the cell."""


def curves(evidence: Evidence) -> Iterator[list[Point]]:
    """Yields curves: cells measured at three sizes or more, and the rows of sweeps."""
    several = at_sizes(evidence.results, _LEAST)
    found = grouped(
        (_curve_of(case), (setting, figure, case))
        for case in cases_of(evidence)
        if case.result.better == "higher" and (figure := figure_of(case.cell)) is not None
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
    return range_of(lambda figure: shown(figure, result), figures)


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
    """Returns, for each point, the median slope of all pairs of points up to it (Theil-Sen)."""
    found: list[float] = []
    slopes: list[float] = []
    for place, (x2, y2) in enumerate(logs):
        slopes += ((y2 - y1) / (x2 - x1) for x1, y1 in logs[:place] if x2 > x1)
        slopes.sort()
        found.append(statistics.median(slopes) if slopes else 0.0)
    return found

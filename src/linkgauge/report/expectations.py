"""What was expected of a result, and which cells differ: a few lines after its matrices."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from linkgauge.model.cell_id import place_of
from linkgauge.model.result import CellResult, Result, Verdict
from linkgauge.model.units import unit_of

from .blocks import TONES, Line, Span, line, plain
from .matrix import shown
from .sentences import first_of

MOST = 3
"""Most expectations shown per result, those of the most cells first."""
CLEARLY = 0.9
"""Below this part of a total's share of what is expected, a transfer's own is said instead; below
this part of what links carry at their best, what is expected is marked."""
HELD = "↓"
"""Marks figures of links that run below their best."""


def reasons_lines(cells: Iterable[tuple[CellResult, str]]) -> Iterator[Line]:
    """What was expected of cells of these units, with the arithmetic: each once, those of the most
    cells first."""
    counts = Counter(reason for each in cells for reason in _expected(*each))
    for reason, _ in counts.most_common(MOST):
        yield plain(reason, "dim")
    if len(counts) > MOST:
        yield plain(f"and {len(counts) - MOST} more expectations", "dim")


def beside_lines(results: Sequence[Result], verdict: Verdict) -> Iterator[Line]:
    """The cells with this verdict, and the share that each is of what is expected."""
    cells = [
        in_result(results, one, compared(one, cell))
        for one in results
        for cell in one.cells
        if cell.verdict == verdict and cell.summary
    ]
    if cells:
        named = first_of([*dict.fromkeys(cells)], ", ")
        yield line(Span(verdict, TONES[verdict]), f" {named} of what is expected")


def in_result(results: Sequence[Result], result: Result, text: str) -> str:
    """With the benchmark's name where there are several."""
    return f"{result.benchmark} {text}" if len({one.benchmark for one in results}) > 1 else text


def share_of(cell: CellResult) -> float | None:
    """The median as a part of the expected figure; None where either is unknown."""
    return cell.share(expected_of(cell))


def expected_of(cell: CellResult) -> float | None:
    """What it should reach, else what it cannot exceed; None where nothing is expected."""
    return None if cell.expected is None else cell.expected.figure


def held_below(cell: CellResult) -> float | None:
    """What would be expected with every link at its best, where what is expected is clearly less;
    else None."""
    if cell.expected is None or cell.expected.nominal is None:
        return None
    expected, nominal = cell.expected.figure, cell.expected.nominal
    share = cell.share(nominal, expected)
    return nominal if share is not None and share < CLEARLY else None


def reference_of(cell: CellResult) -> float | None:
    """What its share is shown of: what links at their best would carry, where they run clearly
    below that; else what is expected. None where nothing is expected."""
    return held_below(cell) or expected_of(cell)


def is_held(cell: CellResult) -> bool:
    """Whether a cell is ok, but links on its way run clearly below their best."""
    return cell.status == "pass" and cell.verdict == "ok" and held_below(cell) is not None


def compared(result: Result, cell: CellResult) -> str:
    """A cell and its share of the expected figure: host:0 -> sim:3 43%; where a transfer's own
    share is clearly less than that of a total, the lowest one's: others -> sim:7: sim:3 -> sim:7 by
    ce 43%."""
    lowest = lowest_share(cell)
    if lowest is None:
        return place_of(result, cell)
    return f"{place_of(result, cell)}{lowest.whose} {lowest.share:.0%}"


class Lowest(NamedTuple):
    """What of a cell is the furthest below what is expected: its figure in the unit of the result,
    and the share that it is of what is expected; `whose` adds to the cell's name the transfer."""

    share: float
    figure: float
    whose: str = ""


def lowest_share(cell: CellResult) -> Lowest | None:
    """Of the cell's figure, or of a transfer's own, if clearly lower; None without any."""
    share = share_of(cell)
    if share is None or cell.summary is None:
        return None
    own = [
        (part.summary.median / part.expected, part.summary.median, part.transfer)
        for part in cell.parts
        if part.summary is not None and part.expected
    ]
    if own and min(own)[0] < CLEARLY * share:
        lowest, median, number = min(own)
        return Lowest(lowest, median, f": {cell.transfers[number]}")
    return Lowest(share, cell.summary.median)


def _expected(cell: CellResult, unit: str) -> Iterator[str]:
    """One line of arithmetic; none where nothing is expected."""
    expected, value = cell.expected, expected_of(cell)
    if expected is not None and value is not None:
        at_most = "at least " if cell.report.is_latency else "at most "
        bound = at_most if expected.achievable is None else ""
        yield f"expected {bound}{shown(value, unit)} {unit_of(unit).shown}: {expected.because}"

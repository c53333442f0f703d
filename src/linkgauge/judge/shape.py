"""Finds patterns in tables of figures. A pattern is no failure: it shows how a machine is built."""

from __future__ import annotations

import itertools
import math
import statistics
from collections.abc import Iterator, Sequence

from linkgauge.judge.blame.cases import Case, cases_of
from linkgauge.model.cell_id import ends_of, spoken
from linkgauge.model.documents.result import CellResult, Result
from linkgauge.model.grouped import grouped
from linkgauge.model.units import count_of, unit_of

from .findings import Evidence, Finding

ASYMMETRIC = 0.9
"""Two directions differ if one figure is below this share of the other."""
_APART = 1.25
"""The least ratio between two levels of figures that form classes."""
_TIGHT = 0.05
"""The most by which the figures within a class may differ, relative to it."""


def figure_of(cell: CellResult) -> float | None:
    return cell.summary.median if cell.summary and cell.summary.median > 0 else None


def shown(figure: float, result: Result) -> str:
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
        mine, theirs = figure_of(cell), figure_of(back.cell)
        if mine is not None and theirs is not None:
            pairs += 1
            if mine < ASYMMETRIC * theirs:
                one_sided.append((mine / theirs, cell, mine, theirs))
    if not one_sided:
        return
    share, cell, mine, theirs = min(one_sided, key=lambda found: found[0])
    are = "are" if one_sided[1:] else "is"
    found = (
        f"{result.benchmark}: {len(one_sided)} of {count_of(pairs // 2, 'pair')} {are} slower one "
        f"way; {ends_of(cell)} has {shown(mine, result)}, {share:.0%} of the "
        f"{shown(theirs, result)} on the way back"
    )
    why = "a link is equally fast both ways, so something slows one direction"
    cells = _named(result, [cell for _, cell, _, _ in one_sided])
    yield Finding("directions", "note", str(cell), found, why, cells=cells)


def _named(result: Result, cells: Sequence[CellResult]) -> tuple[str, ...]:
    return tuple(spoken(result, cell) for cell in cells)


def check_classes(evidence: Evidence) -> Iterator[Finding]:
    """Reports pairs whose figures form two groups, such as pairs with one link and with two."""
    for result in evidence.results:
        if result.sweep or result.better != "higher" or len(result.cells) < 6:
            continue
        figures = sorted(f for cell in result.cells if (f := figure_of(cell)) is not None)
        levels = split_levels(figures)
        equivalent = len({cell.definition for cell in result.cells if cell.summary}) == 1
        if levels is None or not equivalent or not _by_pairs(result):
            continue
        low, high = levels
        ratio = high / low
        links = round(ratio)
        slower = [c for c in result.cells if (figure_of(c) or high) < math.sqrt(low * high)]
        if _share_a_place(slower):
            continue  # a slow row or column is a device's, which is slow_parts.py's matter
        faster = [c for c in result.cells if (figure_of(c) or 0.0) > math.sqrt(low * high)]
        least, most = shown(low, result), shown(high, result)
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

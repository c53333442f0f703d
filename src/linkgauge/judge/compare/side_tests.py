"""Collects the figures of the compared sides by cell, and tests their differences."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Literal, NamedTuple

import msgspec
from msgspec.structs import replace

from linkgauge.model.cell_id import CellId
from linkgauge.model.documents.history import PastCell
from linkgauge.model.documents.result import Definition
from linkgauge.model.grouped import grouped
from linkgauge.model.stats.changes import (
    Side,
    SideTest,
    adjusted,
    compare_sides,
)
from linkgauge.model.stats.moments import Spread
from linkgauge.model.stats.spread import CellLogs, doubted, spreads

from .likeness import CellFigure, Runs, conditions

Statistic = Literal["figure", "slow_p95", "slow_p99"]


class Sides(NamedTuple):
    """The sides of a comparison. `history` has more runs of the first side's machine."""

    names: Sequence[str]
    runs: Sequence[Runs]
    history: Runs = ()


Logs = Mapping[int, float]
"""Logarithms of figures, by the number of the run."""
Key = tuple[CellId, str, Definition | None]
"""The identity of a cell in a comparison; figures with two units or definitions belong to two
cells."""


def key_of(cell: CellFigure | PastCell) -> Key:
    return cell.id, cell.unit, cell.definition or None  # type: ignore[return-value]


class SideFigures(msgspec.Struct):
    """A cell's figures by run number, on each side and in each set of the history."""

    sides: list[dict[int, CellFigure]]
    history: list[dict[int, CellFigure]]

    @property
    def any(self) -> CellFigure:
        """Returns one figure, with bytes, path and devices from figures that have them; without
        bytes, those of the table's size, if it has one."""
        every = [cell for side in (*self.sides, *self.history) for cell in side.values()]
        first = every[0]
        path = next((cell.path for cell in every if cell.path), None)
        devices = next((cell.devices for cell in every if cell.devices), ())
        sizes = (cell.bytes for cell in every if cell.bytes is not None)
        own = next(sizes, first.size if first.size > 1 else None)
        return replace(first, path=path, devices=devices, bytes=own)


def table_of(given: Sides) -> dict[Key, SideFigures]:
    # Machine, state and settings may change figures.
    sets = grouped((conditions(run), run) for run in given.history).values()
    every, sides = [*given.runs, *sets], len(given.runs)
    table = defaultdict[Key, list[dict[int, CellFigure]]](lambda: [{} for _ in every])
    numbered = enumerate((at, run) for at, runs in enumerate(every) for run in runs)
    for number, (at, run) in numbered:
        for cell in run.cells:
            table[key_of(cell)][at][number] = cell
    return {
        key: SideFigures(found[:sides], [own for own in found[sides:] if own])
        for key, found in table.items()
        if any(found[:sides])
    }


class Tests(NamedTuple):
    """The tests of one statistic. `spreads` has the variation between runs by cell. `sides` has
    figures by side and cell. The other fields have entries for all sides but the first: `tests`
    (with adjusted p) by side and cell, `counts` of tests by side."""

    spreads: list[Spread | None]
    sides: list[list[Side | None]]
    tests: list[list[SideTest | None]]
    counts: list[int]


class _CellLogs(CellLogs, frozen=True, kw_only=True):
    """One cell's figures. `within` has each side's variance by its intervals."""

    within: Sequence[Spread | None]
    sides: Sequence[Logs]


def tested(table: Mapping[Key, SideFigures], given: Sides, name: Statistic) -> Tests:
    """Tests for each cell how the other sides differ from the first."""
    # The runs of the first side are a part of the history's first set if nothing differs.
    joins = set(map(conditions, given.runs[0])) == set(map(conditions, given.history[:1]))
    cells = [_runs_of(key, found, name, joins=joins) for key, found in table.items()]
    # Cells that were in doubt are far from their expectation, and overstate how much others vary.
    every = [run for side in given.runs for run in side]
    again = {number for number, run in enumerate(every) if run.again}
    known = spreads(cells, again)
    first, *others = (_on_side(cells, number) for number in range(len(given.runs)))
    tests = [
        adjusted(
            [
                None if one is None or two is None else compare_sides(one, two, spread)
                for one, two, spread in zip(first, other, known, strict=True)
            ]
        )
        for other in others
    ]
    counts = [len(own) - own.count(None) for own in tests]
    return Tests(known, [first, *others], tests, counts)


def _runs_of(key: Key, found: SideFigures, name: Statistic, *, joins: bool) -> _CellLogs:
    sides, history = ([logs_of(own, name) for own in each] for each in (found.sides, found.history))
    within = [_within(own) if name == "figure" else None for own in found.sides]
    first = sides[0] | history.pop(0) if joins and history else sides[0]
    return _CellLogs(key[0].table, [first, *sides[1:], *history], within=within, sides=sides)


def _within(cells: Mapping[int, CellFigure]) -> Spread | None:
    """Returns the mean variance that a side's intervals imply; None if an interval is missing."""
    known = [cell.within for cell in cells.values() if cell.figure]
    ranges = [one for one in known if one is not None]
    if not ranges or len(ranges) < len(known):
        return None
    return Spread(fmean(one.variance for one in ranges), min(one.degrees for one in ranges))


def logs_of(cells: dict[int, CellFigure], name: Statistic = "figure") -> dict[int, float]:
    return {
        number: math.log(value)
        for number, cell in cells.items()
        if cell.figure and (value := getattr(cell, name)) and value > 0
    }


def _on_side(cells: Sequence[_CellLogs], number: int) -> list[Side | None]:
    within = doubted([(cell.kind, cell.within[number]) for cell in cells])
    return [
        Side(tuple(own.values()), spread) if (own := cell.sides[number]) else None
        for cell, spread in zip(cells, within, strict=True)
    ]

"""The figures of the sides that are compared, by cell, and how they are tested: which runs tell how
much a cell varies."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal, NamedTuple

import msgspec

from linkgauge.model.cell_id import CellId
from linkgauge.model.result import Definition
from linkgauge.model.stats.changes import (
    FEW,
    RunChange,
    Side,
    SideTest,
    changes,
    compare_sides,
    errors_apart,
)
from linkgauge.model.stats.single_runs import Moved, Single, doubted, stretches
from linkgauge.model.stats.spread import Spread, spreads, varied

from .likeness import Runs, is_alike
from .run_figures import CellFigure, RunFigures

Statistic = Literal["figure", "slow_p95", "slow_p99"]


class Sides(NamedTuple):
    """What is compared: names of sides, with their runs, and other runs of the first one's machine
    in the same state, which show how much runs vary."""

    names: Sequence[str]
    runs: Sequence[Runs]
    history: Runs = ()


Key = tuple[CellId, str, Definition | None]
"""What tells a cell from others: figures of two units or definitions are those of two cells."""


def key_of(cell: CellFigure) -> Key:
    return cell.id, cell.unit, cell.definition


class Found(msgspec.Struct):
    """A cell's figures by run, counted over all sides and the history: of each side, and of sets
    of runs in the history that share a state of the machine."""

    sides: list[dict[int, CellFigure]]
    history: list[dict[int, CellFigure]]

    @property
    def any(self) -> CellFigure:
        return next(cell for side in (*self.sides, *self.history) for cell in side.values())

    @property
    def devices(self) -> tuple[str, ...]:
        """The devices of the cell. Figures from the history do not name them."""
        every = (cell.devices for side in self.sides for cell in side.values())
        return next(filter(None, every), ())


def table_of(given: Sides) -> dict[Key, Found]:
    """The cells in the order of the first side that has them."""
    table: dict[Key, Found] = {}
    sets = _sets(given.history)
    number = 0
    for side, runs in enumerate(given.runs):
        for run in runs:
            for cell in run.cells:
                found = table.setdefault(key_of(cell), Found([{} for _ in given.runs], []))
                found.sides[side][number] = cell
            number += 1
    for runs in sets:
        own: dict[Key, dict[int, CellFigure]] = {}
        for run in runs:
            for cell in run.cells:
                own.setdefault(key_of(cell), {})[number] = cell
            number += 1
        for key, cells in own.items():
            if key in table:
                table[key].history.append(cells)
    return table


def _sets(history: Runs) -> list[list[RunFigures]]:
    """Sets of alike runs: between two, a driver's update may have changed figures."""
    sets: list[list[RunFigures]] = []
    for run in history:
        own = next((one for one in sets if is_alike(one[0], run)), None)
        if own is None:
            sets.append([run])
        else:
            own.append(run)
    return sets


class Tests(NamedTuple):
    """Of one statistic, by cell: how much runs vary, the sides, and (by other side) what was
    tested, with p adjusted for all cells, and how many were."""

    spreads: list[Spread | None]
    sides: list[list[Side | None]]
    tests: list[list[SideTest | None]]
    changes: list[list[RunChange | None]]
    counts: list[int]


def tested(table: dict[Key, Found], given: Sides, name: Statistic) -> Tests:
    again = _again(given)
    joins = _joins(given)
    logs = [
        ([_logs(side, name) for side in one.sides], [_logs(own, name) for own in one.history])
        for one in table.values()
    ]
    whole, chosen = (
        [
            varied(key[0].sheet, _whole_sets(sides, history, left_out, joined=joins))
            for key, (sides, history) in zip(table, logs, strict=True)
        ]
        for left_out in (set[int](), again)
    )
    if not any(cell.degrees for cell in chosen):
        chosen = whole
    known = spreads(chosen, whole)
    sides = _as_sides(table, [own for own, _ in logs], name)
    degrees = [cell.degrees for cell in whole]
    tests = [
        _tests(table, [(one[0], one[number]) for one in sides], known, degrees)
        for number in range(1, len(given.runs))
    ]
    counts = [sum(one is not None for one in own) for own in tests]
    return Tests(known, sides, tests, [changes(own) for own in tests], counts)


def _joins(given: Sides) -> bool:
    """Whether the first side's runs belong to the first set of the history."""
    return bool(given.history) and all(is_alike(given.history[0], run) for run in given.runs[0])


def _whole_sets(
    sides: Sequence[dict[int, float]],
    history: Sequence[dict[int, float]],
    again: set[int],
    *,
    joined: bool,
) -> list[dict[int, float]]:
    """Sets of runs with a mean of their own, without those that measured only some cells."""
    sets = [*(_without(side, again) for side in sides), *history]
    if joined and history:
        return [{**sets[0], **history[0]}, *sets[1 : len(sides)], *history[1:]]
    return sets


def _again(given: Sides) -> set[int]:
    """The numbers of runs that measured only cells in doubt: these were chosen for being far from
    what they should be, so that they overstate how much runs of other cells vary."""
    every = [run for side in given.runs for run in side]
    return {number for number, run in enumerate(every) if run.again}


def _without(logs: dict[int, float], runs: set[int]) -> dict[int, float]:
    return {number: log for number, log in logs.items() if number not in runs}


def _logs(cells: dict[int, CellFigure], name: Statistic) -> dict[int, float]:
    values = {number: getattr(cell, name) for number, cell in cells.items() if cell.figure}
    return {number: math.log(value) for number, value in values.items() if value and value > 0}


def _as_sides(
    table: dict[Key, Found], logs: Sequence[Sequence[dict[int, float]]], name: Statistic
) -> list[list[Side | None]]:
    """By cell, and then by side."""
    by_side = list[list[Side | None]]()
    for number in range(len(logs[0]) if logs else 0):
        own = [one[number] for one in logs]
        found = [cell.sides[number] for cell in table.values()]
        alone = [_single(key, cells) for key, cells in zip(table, found, strict=True)]
        within = doubted(alone if name == "figure" else [None] * len(alone))
        by_side.append([
            Side(tuple(of.values()), spread) if of else None
            for of, spread in zip(own, within, strict=True)
        ])  # fmt: skip
    return [list(one) for one in zip(*by_side, strict=True)]


def _single(key: Key, cells: dict[int, CellFigure]) -> Single | None:
    cell = next(iter(cells.values())) if len(cells) == 1 else None
    spread = None if cell is None else cell.within
    if cell is None or spread is None:
        return None
    return Single(key[0].sheet, spread)


def _tests(
    table: dict[Key, Found],
    pairs: Sequence[tuple[Side | None, Side | None]],
    known: Sequence[Spread | None],
    degrees: Sequence[int],
) -> list[SideTest | None]:
    """Of each cell. Where only the intervals of single runs tell, they are stretched by how far
    cells of these runs moved apart that should not."""
    moved = {
        key: Moved(key[0].sheet, found.any.host, apart)
        for (key, found), (first, other), own in zip(table.items(), pairs, degrees, strict=True)
        if first is not None and other is not None and own < FEW
        for apart in (errors_apart(first, other),)
        if apart is not None
    }
    stretched = dict(zip(moved, stretches(list(moved.values())), strict=True))
    return [
        None
        if first is None or other is None
        else compare_sides(first, other, spread, own, stretched.get(key, 1.0))
        for key, (first, other), spread, own in zip(table, pairs, known, degrees, strict=True)
    ]

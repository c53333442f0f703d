"""Runs compared cell by cell: two sides or more, each of one run or several.

The unit of evidence is the run (model/run_changes.py). How much runs vary is learnt from all sides
with several runs and from the history, of each cell and of those alike: the same benchmark on the
same backend at the same size.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from statistics import median
from typing import Literal, NamedTuple

import msgspec

from linkgauge.model.result import CellKey, Definition, Status
from linkgauge.model.run_changes import (
    Aim,
    Needed,
    RunChange,
    Side,
    SideTest,
    changes,
    compare_sides,
    needed,
)
from linkgauge.model.run_spread import Spread, spreads, varied
from linkgauge.model.student import critical, rank_sum_p
from linkgauge.model.units import Better

from .likeness import Runs, differences, is_alike, unlike
from .machine_facts import Fact
from .run_figures import CellFigure, RunFigures

Direction = Literal["better", "worse", "same", "unknown"]
Statistic = Literal["figure", "slow_p95", "slow_p99"]
_RANK = ("pass", "skip", "fail", "timeout", "error")
"""Statuses, the best first."""


class Sides(NamedTuple):
    """What is compared: names of sides, with their runs, and other runs of the first one's machine
    in the same state, which show how much runs vary."""

    names: Sequence[str]
    runs: Sequence[Runs]
    history: Runs = ()


class SideFigure(msgspec.Struct, frozen=True):
    """A cell on one side: the geometric mean of the figures of so many `runs`, with the interval of
    their true mean (null: nothing tells how much runs vary), and of the slow sides of their samples
    (`slow_p95`, `slow_p99`). `status` is the worst of its runs, `reason` why."""

    figure: float | None
    low: float | None
    high: float | None
    runs: int
    status: Status
    slow_p95: float | None = None
    slow_p99: float | None = None
    reason: str | None = None


class CellChange(msgspec.Struct, frozen=True):
    """A side against the first. `direction` is unknown where there is no figure, or where a loss
    as large as the one aimed at might have been missed; `needed` says how large it may be and how
    many more runs it takes. `rank_sum` is the p of Mann and Whitney's test over the runs, which
    decides nothing."""

    direction: Direction
    change: RunChange | None = None
    needed: Needed | None = None
    rank_sum: float | None = None
    slow_p95: RunChange | None = None
    slow_p99: RunChange | None = None


class RunCell(msgspec.Struct, frozen=True):
    """One cell: null where a side has none, with a change for each side but the first."""

    benchmark: str
    backend: str
    size: int
    row: str
    column: str
    repeat: int
    unit: str
    better: Better
    sides: tuple[SideFigure | None, ...]
    changes: tuple[CellChange, ...]
    definition: Definition | None = None

    @property
    def name(self) -> str:
        """`benchmark [row, column]`."""
        return f"{self.benchmark} [{self.row}, {self.column}]"

    @property
    def key(self) -> _Key:
        return _Key(self.benchmark, self.backend, self.size, self.row, self.column, self.repeat,
                    self.unit, self.definition)  # fmt: skip


class SideName(msgspec.Struct, frozen=True):
    """A side, with the ids of its runs."""

    name: str
    runs: tuple[str, ...]


class RunComparison(msgspec.Struct, frozen=True):
    """Sides compared, the first one is the baseline. `unlike` are the facts and settings in which
    they differ that figures depend on, `differences` all that are known. `history` is the number of
    other runs that showed how much runs vary, `compared` that of cells with figures on both sides,
    for each side but the first."""

    sides: tuple[SideName, ...]
    cells: tuple[RunCell, ...]
    unlike: tuple[Fact, ...]
    differences: tuple[Fact, ...]
    aim: Aim
    history: int
    compared: tuple[int, ...]
    simulated: bool = False


class _Key(NamedTuple):
    """What tells a cell from others: figures of two units or definitions are those of two cells."""

    benchmark: str
    backend: str
    size: int
    row: str
    column: str
    repeat: int
    unit: str
    definition: Definition | None

    @property
    def kind(self) -> tuple[str, str, int]:
        """The same of cells whose figures vary alike."""
        return self.benchmark, self.backend, self.size


def key_of(cell: CellFigure) -> _Key:
    at: CellKey = cell.key
    return _Key(at.benchmark, at.backend, at.size, *at.place, at.repeat, cell.unit, cell.definition)


class _Found(msgspec.Struct):
    """A cell's figures by run, counted over all sides and the history: of each side, and of sets
    of runs in the history that share a state of the machine."""

    sides: list[dict[int, CellFigure]]
    history: list[dict[int, CellFigure]]

    @property
    def any(self) -> CellFigure:
        return next(cell for side in (*self.sides, *self.history) for cell in side.values())


def compare_runs(given: Sides, aim: Aim) -> RunComparison:
    """Compares each side with the first."""
    table = _table(given)
    known = {name: _tested(table, given, name) for name in ("figure", "slow_p95", "slow_p99")}
    cells = list[RunCell]()
    for at, (key, found) in enumerate(table.items()):
        better = found.any.better
        every = [
            _change(found, number, at, known, aim, better) for number in range(1, len(given.runs))
        ]
        figures = tuple(
            _side(list(side.values()), known["figure"].spreads[at], known["figure"].sides[at][n])
            for n, side in enumerate(found.sides)
        )
        cells.append(
            RunCell(
                *key[:6],
                unit=key.unit,
                better=better,
                sides=figures,
                changes=tuple(every),
                definition=key.definition,
            )
        )
    return RunComparison(
        sides=tuple(
            SideName(name, tuple(run.id for run in runs))
            for name, runs in zip(given.names, given.runs, strict=True)
        ),
        cells=tuple(cells),
        unlike=unlike(given.runs),
        differences=differences(given.runs),
        aim=aim,
        history=len(given.history),
        compared=tuple(known["figure"].counts),
        simulated=any(run.simulated for side in given.runs for run in side),
    )


def _table(given: Sides) -> dict[_Key, _Found]:
    """The cells in the order of the first side that has them."""
    table: dict[_Key, _Found] = {}
    sets = _sets(given.history)
    number = 0
    for side, runs in enumerate(given.runs):
        for run in runs:
            for cell in run.cells:
                found = table.setdefault(key_of(cell), _Found([{} for _ in given.runs], []))
                found.sides[side][number] = cell
            number += 1
    for runs in sets:
        own: dict[_Key, dict[int, CellFigure]] = {}
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


class _Tests(NamedTuple):
    """Of one statistic, by cell: how much runs vary, the sides, and (by other side) what was
    tested, with p adjusted for all cells, and how many were."""

    spreads: list[Spread | None]
    sides: list[list[Side | None]]
    tests: list[list[SideTest | None]]
    changes: list[list[RunChange | None]]
    counts: list[int]


def _tested(table: dict[_Key, _Found], given: Sides, name: Statistic) -> _Tests:
    again = _again(given)
    joins = _joins(given)
    logs = [
        ([_logs(side, name) for side in one.sides], [_logs(own, name) for own in one.history])
        for one in table.values()
    ]
    whole, chosen = (
        [
            varied(key.kind, _whole_sets(sides, history, left_out, joined=joins))
            for key, (sides, history) in zip(table, logs, strict=True)
        ]
        for left_out in (set[int](), again)
    )
    if not any(cell.degrees for cell in chosen):
        chosen = whole
    known = spreads(chosen, whole)
    sides = [
        [_as_side(own, side, name) for own, side in zip(found.sides, one, strict=True)]
        for found, (one, _) in zip(table.values(), logs, strict=True)
    ]
    tests = [
        [
            None
            if (first := one[0]) is None or (other := one[number]) is None
            else compare_sides(first, other, spread, cell.degrees)
            for one, spread, cell in zip(sides, known, whole, strict=True)
        ]
        for number in range(1, len(given.runs))
    ]
    counts = [sum(one is not None for one in own) for own in tests]
    return _Tests(known, sides, tests, [changes(own) for own in tests], counts)


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


def _as_side(cells: dict[int, CellFigure], logs: dict[int, float], name: Statistic) -> Side | None:
    if not logs:
        return None
    alone = next(iter(cells.values())) if len(cells) == 1 and name == "figure" else None
    return Side(tuple(logs.values()), None if alone is None else alone.within)


def _change(
    found: _Found,
    number: int,
    at: int,
    known: dict[str, _Tests],
    aim: Aim,
    better: Better,
) -> CellChange:
    """Side `number` against the first, of the cell at this place."""
    of = known["figure"]
    change, test = of.changes[number - 1][at], of.tests[number - 1][at]
    if change is None or test is None:
        return CellChange("unknown")
    first, other = of.sides[at][0], of.sides[at][number]
    assert first is not None  # noqa: S101  # both were tested
    assert other is not None  # noqa: S101
    counts = len(first.logs), len(other.logs)
    lacking = needed(test, counts, aim, of.counts[number - 1], better)
    return CellChange(
        direction=_direction(change, lacking, aim, better),
        change=change,
        needed=lacking,
        rank_sum=rank_sum_p(list(first.logs), list(other.logs)) if min(counts) > 1 else None,
        slow_p95=known["slow_p95"].changes[number - 1][at],
        slow_p99=known["slow_p99"].changes[number - 1][at],
    )


def _direction(change: RunChange, lacking: Needed, aim: Aim, better: Better) -> Direction:
    if change.holm < aim.significance:
        return "better" if (change.ratio > 1) == (better == "higher") else "worse"
    return "same" if lacking.detectable <= aim.detect else "unknown"


def _side(
    cells: Sequence[CellFigure], spread: Spread | None, side: Side | None
) -> SideFigure | None:
    if not cells:
        return None
    status = max((cell.status for cell in cells), key=_RANK.index)
    reason = next((cell.reason for cell in cells if cell.status == status), None)
    if side is None:
        return SideFigure(None, None, None, len(cells), status, reason=reason)
    low, high = _interval(side, spread)
    slow = (_middle(cell.slow_p95 for cell in cells), _middle(cell.slow_p99 for cell in cells))
    return SideFigure(math.exp(side.mean), low, high, len(side.logs), status, *slow, reason)


def _interval(side: Side, spread: Spread | None) -> tuple[float | None, float | None]:
    """The 95 % interval of the true mean of runs."""
    known = spread or side.within
    if known is None:
        return None, None
    reach = critical(0.05, known.degrees) * known.deviation / math.sqrt(len(side.logs))
    return math.exp(side.mean - reach), math.exp(min(300.0, side.mean + reach))


def _middle(values: Iterator[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return median(known) if known else None

"""Compares runs cell by cell. Each run counts as one observation (model/stats/changes.py). How much
runs vary is known from sides of several runs, from the history, and from similar cells."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from statistics import median

import msgspec

from linkgauge.model.by_name import by_name
from linkgauge.model.cell_id import CellId
from linkgauge.model.documents.result import Definition, Status
from linkgauge.model.printable import BriefRepr
from linkgauge.model.recorded import PathKind
from linkgauge.model.stats.changes import (
    FEW,
    Aim,
    Direction,
    Needed,
    RunChange,
    Side,
    loss,
    needed,
    proven,
)
from linkgauge.model.stats.moments import Spread
from linkgauge.model.stats.student import critical
from linkgauge.model.units import Better

from .likeness import CellFigure, differences, unlike
from .machine_state import Fact
from .side_tests import Key, Sides, Statistic, Tests, table_of, tested
from .what_changed import Changed, Moved, grouped

RANK = ("pass", "skip", "fail", "timeout", "error")
"""Statuses, the best first."""
_SLOW: tuple[Statistic, ...] = ("slow_p95", "slow_p99")


class SideFigure(msgspec.Struct, frozen=True):
    """A measured cell on one side of a comparison.

    figure: The geometric mean of its runs' figures, in the cell's unit; null if none has one.
    low: The low end of the 95 % interval of the true mean; null if the variation of runs is
      unknown.
    high: The high end of the interval; null if the variation of runs is unknown.
    runs: The number of runs that have the cell.
    status: The worst status of the runs that tried the cell; of all runs if none tried it.
    slow_p95: 95 % of a run's samples are at least as good as this; the median over the runs; null
      if unknown.
    slow_p99: The same for 99 % of the samples; null if unknown.
    reason: Why the cell has this status; null if it passed, or if the reason is unknown.
    untried: True if no run tried the cell, because its time budget was used or it was interrupted;
      absent if any run did."""

    figure: float | None
    low: float | None
    high: float | None
    runs: int
    status: Status
    slow_p95: float | None = None
    slow_p99: float | None = None
    reason: str | None = None
    untried: bool | msgspec.UnsetType = msgspec.UNSET


class CellChange(msgspec.Struct, frozen=True):
    """The change of a cell on one side compared with the first side.

    direction: Whether the cell got better or worse. `same` if no change is proven; `unknown`
      without figures, or with too few runs to find the loss that the aim asks for (`detect`).
    change: The change; null without figures on both sides, or if the variation of runs is unknown.
    needed: The loss that these runs can find, and how many more runs are needed; null if `change`
      is null.
    losses: The loss of each of the side's runs, as a fraction of the first side's median figure,
      the largest first; negative for a gain.
    slow_p95: The change of the slow 95th percentile; null if unknown.
    slow_p99: The change of the slow 99th percentile; null if unknown."""

    direction: Direction
    change: RunChange | None = None
    needed: Needed | None = None
    losses: tuple[float, ...] = ()
    slow_p95: RunChange | None = None
    slow_p99: RunChange | None = None

    @property
    def proven(self) -> Moved | None:
        """Returns the direction and the ratio of the change, or None if no change is proven."""
        if self.change is None or self.direction == "same" or self.direction == "unknown":
            return None
        return self.direction, self.change.ratio


class RunCell(CellId, frozen=True, kw_only=True, omit_defaults=False):
    """A cell of compared runs.

    bytes: The number of bytes to which its figures refer; null for work without memory.
    unit: The unit of its figures.
    better: Whether higher or lower figures are better.
    sides: Its figures on each side; null where a side has none.
    changes: The change of each side but the first.
    definition: How a total is computed; null for other figures, and for totals of earlier versions.
    path: The kind of the path that it measures; null if unknown."""

    bytes: int | None
    unit: str
    better: Better
    sides: tuple[SideFigure | None, ...]
    changes: tuple[CellChange, ...]
    definition: Definition | None = None
    path: PathKind | None = None

    @property
    def key(self) -> Key:
        return self.id, self.unit, self.definition

    def ratio(self, number: int) -> float | None:
        """Returns a side's ratio to the first side. None for the first side or without figures."""
        change = self.changes[number - 1].change if number else None
        if change is not None:
            return change.ratio
        first, other = (side and side.figure for side in (self.sides[0], self.sides[number]))
        return other / first if number and first and other else None


class SideName(msgspec.Struct, frozen=True):
    """A side of a comparison.

    name: The side's name.
    runs: The ids of its runs."""

    name: str
    runs: tuple[str, ...]


class RunComparison(BriefRepr, msgspec.Struct, frozen=True):
    """Compared sides. The first side is the baseline.

    sides: The sides.
    cells: The compared cells.
    unlike: Differences between sides in facts and settings that figures depend on.
    differences: All known facts and settings in which sides differ.
    aim: The aim of the comparison.
    history: The number of other runs that showed how much runs vary.
    compared: The number of cells with figures on both sides, for each side but the first.
    simulated: Whether any of the runs was measured on a simulated machine.
    changed: The groups of cells that changed, at most ten for each side, the largest first.
    anew: The number of runs whose ranges were computed again from their samples, because their
      files hold other ranges."""

    sides: tuple[SideName, ...]
    cells: tuple[RunCell, ...]
    unlike: tuple[Fact, ...]
    differences: tuple[Fact, ...]
    aim: Aim
    history: int
    compared: tuple[int, ...]
    simulated: bool = False
    changed: tuple[Changed, ...] = ()
    anew: int = 0


def compare_runs(given: Sides, aim: Aim) -> RunComparison:
    table = table_of(given)
    names: tuple[Statistic, ...] = ("figure", *_SLOW)
    known = {name: tested(table, given, name) for name in names}
    of, others = known["figure"], range(1, len(given.runs))
    every = [found.any for found in table.values()]
    cells = [
        by_name(
            RunCell,
            one,
            sides=tuple(
                _side(list(side.values()), of.spreads[at], of.sides[n][at])
                for n, side in enumerate(found.sides)
            ),
            changes=tuple(_change(one.better, n, at, known, aim) for n in others),
            definition=one.definition or None,
        )
        for at, (one, found) in enumerate(zip(every, table.values(), strict=True))
    ]
    changed = list[Changed]()
    for n in others:
        changed += grouped(given.names[n], every, [one.changes[n - 1].proven for one in cells])
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
        compared=tuple(of.counts),
        simulated=any(run.simulated for side in given.runs for run in side),
        changed=tuple(changed),
        anew=sum(run.anew for side in given.runs for run in side),
    )


def _change(
    better: Better, number: int, at: int, known: Mapping[Statistic, Tests], aim: Aim
) -> CellChange:
    of = {name: tests.tests[number - 1][at] for name, tests in known.items()}
    if (test := of["figure"]) is None:
        return CellChange("unknown")
    first, other = test.sides
    lacking = needed(test, aim, known["figure"].counts[number - 1], better)
    middle = median(first.logs)
    losses = (loss(math.exp(one - middle), better) for one in other.logs)
    otherwise: Direction = "same" if lacking.detectable <= aim.detect else "unknown"
    return CellChange(
        direction=proven(test, aim, better) or otherwise,
        change=by_name(RunChange, test),
        needed=lacking,
        losses=tuple(sorted(losses, reverse=True)),
        **{name: by_name(RunChange, one) for name in _SLOW if (one := of[name])},
    )


def _side(
    cells: Sequence[CellFigure], spread: Spread | None, side: Side | None
) -> SideFigure | None:
    if not cells:
        return None
    tried = [cell for cell in cells if cell.tried]
    status = max((cell.status for cell in tried or cells), key=RANK.index)
    reason = next((cell.reason for cell in tried or cells if cell.status == status), None)
    if side is None:
        untried = msgspec.UNSET if tried else True
        return SideFigure(None, None, None, len(cells), status, reason=reason, untried=untried)
    low, high = _interval(side, spread)
    slow = (_middle(cell.slow_p95 for cell in cells), _middle(cell.slow_p99 for cell in cells))
    return SideFigure(math.exp(side.mean), low, high, len(side.logs), status, *slow, reason)


def _interval(side: Side, spread: Spread | None) -> tuple[float | None, float | None]:
    known = spread or side.within
    if known is None or known.degrees < FEW:  # one degree of freedom makes it 13 deviations wide
        return None, None
    reach = critical(0.05, known.degrees) * known.deviation / math.sqrt(len(side.logs))
    return math.exp(side.mean - reach), math.exp(min(300.0, side.mean + reach))


def _middle(values: Iterator[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return median(known) if known else None

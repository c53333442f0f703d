"""Finds changes over a machine's runs (model/stats/change_points.py) by Benjamini and Hochberg's
test: if nothing changed, at most 1 % of tables report a change."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from linkgauge.model.by_name import by_name
from linkgauge.model.documents.history import History, PastRun, Series, SeriesId
from linkgauge.model.stats.change_points import LEAST, ChangePoint, change_points, holding
from linkgauge.model.stats.changes import ChangedTo, changed_to

from .machine_state import Fact, changed_facts

LEAST_CHANGE = 0.01
"""Smaller changes are left out unless they are asked for."""
LABEL = "label"


class TrendChange(msgspec.Struct, frozen=True):
    """A change of one cell.

    cell: The cell.
    before: The median of the runs between the previous change and this change, in the cell's unit.
    after: The median of the runs from this change to the next change, in the cell's unit.
    ratio: `after` divided by `before`.
    direction: Whether the cell got better or worse.
    first: The number of the earliest run with which the new level may have begun, with 95 %
        confidence.
    last: The number of the latest run with which the new level may have begun.
    p: The probability that chance alone gives such a clear change, adjusted for all tries in this
        series."""

    cell: SeriesId
    before: float
    after: float
    ratio: float
    direction: ChangedTo
    first: int
    last: int
    p: float


class SharedChange(msgspec.Struct, frozen=True):
    """A change that several cells share. They changed in the same direction with the same run.

    since: The number of the run with which the cells changed.
    until: The number of the run before `since`.
    direction: Whether the cells got better or worse.
    ratio: The median of the cells' ratios.
    facts: The changes in the machine between these two runs; if there are none, those between the
      next two runs between which the cells may have changed.
    cells: The cells."""

    since: int
    until: int
    direction: ChangedTo
    ratio: float
    facts: tuple[Fact, ...]
    cells: tuple[TrendChange, ...]


class Trend(History, frozen=True, kw_only=True):
    """A history with its changes.

    changes: The changes of cells, in the order of time."""

    changes: tuple[SharedChange, ...]

    @property
    def few(self) -> int:
        """Returns the number of cells with fewer than six runs, in which no change can be found."""
        return sum(len(one.points) < 2 * LEAST for one in self.series)


class _Found(NamedTuple):
    one: Series
    change: ChangePoint
    direction: ChangedTo
    at: int
    first: int
    last: int


def trend_of(history: History, least: float = LEAST_CHANGE) -> Trend:
    """Cells share a change if they changed in the same direction at about the same run."""
    order = {run.number: at for at, run in enumerate(history.runs)}
    found = list[_Found]()
    for one in history.series:
        for change in change_points([point.figure for point in one.points]):
            places = (order[one.points[n].run] for n in (change.at, change.first, change.last))
            found.append(_Found(one, change, changed_to(change.ratio, one.better), *places))
    most = holding([each.change.p for each in found], len(history.series))
    left = [each for each in found if each.change.p <= most and abs(each.change.ratio - 1) >= least]
    changes = []
    while left:
        (at, direction), _ = Counter((each.at, each.direction) for each in left).most_common(1)[0]
        same = [e for e in left if e.direction == direction and e.first <= at <= e.last]
        left = [each for each in left if each not in same]
        changes.append((at, _change(at, direction, same, history)))
    changes.sort(key=lambda found: found[0])
    return by_name(Trend, history, changes=tuple(change for _, change in changes))


def _change(
    at: int, direction: ChangedTo, found: Sequence[_Found], history: History
) -> SharedChange:
    first, last = max(each.first for each in found), min(each.last for each in found)
    likely = sorted(range(max(first, 1), last + 1), key=lambda place: abs(place - at))
    runs = history.runs
    places = (_differing(history, runs[place - 1], runs[place]) for place in likely)
    return SharedChange(
        runs[at].number,
        runs[at - 1].number,
        direction,
        statistics.median(each.change.ratio for each in found),
        next(filter(None, places), ()),
        tuple(
            TrendChange(
                each.one.cell, each.change.before, each.change.after, each.change.ratio,
                direction, runs[each.first].number, runs[each.last].number, each.change.p,
            )
            for each in found
        ),
    )  # fmt: skip


def _differing(history: History, before: PastRun, after: PastRun) -> tuple[Fact, ...]:
    facts = changed_facts(history.states[before.state], history.states[after.state])
    if before.label != after.label:
        facts += (Fact(LABEL, (before.label, after.label)),)
    return facts

"""Finds changes over a machine's runs (model/stats/change_points.py). Benjamini and Hochberg's test
limits false reports: if nothing changed, at most 1 % of histories show a change."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Sequence

import msgspec

from linkgauge.model.by_name import by_name
from linkgauge.model.documents.history import History, PastRun, SeriesId
from linkgauge.model.stats.change_points import LEAST, change_points, holding
from linkgauge.model.stats.changes import ChangedTo, changed_to

from .machine_state import Fact, changed_facts, differing

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
    p: The probability that chance alone gives such a clear change, adjusted for all tries here."""

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

    since: The number of the first run with the change.
    until: The number of the last run before the change.
    direction: Whether the cells got better or worse.
    ratio: The median of the cells' ratios.
    facts: The changes in the machine between these two runs or, if there are none, between the
      nearest other runs at which the cells may have changed.
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


def trend_of(history: History, least: float = LEAST_CHANGE) -> Trend:
    """Finds changes in a history by at least the fraction `least`. Cells that changed in the same
    direction at about the same run share a change."""
    order = {run.number: at for at, run in enumerate(history.runs)}
    found = list[tuple[int, TrendChange]]()
    for one in history.series:
        for change in change_points([point.figure for point in one.points]):
            at, first, last = (one.points[n].run for n in (change.at, change.first, change.last))
            own = by_name(
                TrendChange, change,
                cell=one.cell, ratio=change.ratio, direction=changed_to(change.ratio, one.better),
                first=first, last=last,
            )  # fmt: skip
            found.append((order[at], own))
    most = holding([one.p for _, one in found], len(history.series))
    left = [each for each in found if each[1].p <= most and abs(each[1].ratio - 1) >= least]
    changes = list[SharedChange]()
    while left:
        (at, way), _ = Counter((at, one.direction) for at, one in left).most_common(1)[0]
        same = [
            one for _, one in left
            if one.direction == way and order[one.first] <= at <= order[one.last]
        ]  # fmt: skip
        left = [each for each in left if each[1] not in same]
        ends = max(order[one.first] for one in same), min(order[one.last] for one in same)
        changes.append(_change(at, ends, same, history))
    return by_name(Trend, history, changes=tuple(sorted(changes, key=lambda one: order[one.since])))


def _change(
    at: int, ends: tuple[int, int], found: Sequence[TrendChange], history: History
) -> SharedChange:
    likely = sorted(range(max(ends[0], 1), ends[1] + 1), key=lambda place: abs(place - at))
    runs = history.runs
    places = (_differing(history, runs[place - 1], runs[place]) for place in likely)
    return SharedChange(
        runs[at].number,
        runs[at - 1].number,
        found[0].direction,
        statistics.median(one.ratio for one in found),
        next(filter(None, places), ()),
        tuple(found),
    )


def _differing(history: History, before: PastRun, after: PastRun) -> tuple[Fact, ...]:
    facts = changed_facts(history.states[before.state], history.states[after.state])
    return differing((*facts, Fact(LABEL, (before.label, after.label))))

"""Finds where the figures of a machine's cells changed over its runs, and what changed in the
machine at the same time.

Change points are those of model/stats/change_points.py. A table of many cells has many chances to
find one, so its changes must meet Benjamini and Hochberg's bound: if nothing changed, at most 1 %
of tables report any change."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import msgspec
from msgspec.structs import asdict

from linkgauge.model.documents.history import History, PastRun, Series, SeriesId
from linkgauge.model.stats.change_points import LEAST, ChangePoint, change_points, holding
from linkgauge.model.stats.changes import ChangedTo, changed_to

from .machine_state import Fact, facts_apart

LEAST_CHANGE = 0.01
"""Smaller changes are left out unless they are asked for."""
LABEL = "label"


class TrendChange(msgspec.Struct, frozen=True):
    """A cell's change.

    cell: Which cell it is.
    before: The median of its runs from the change before on, in the cell's unit.
    after: The median of its runs up to the next change, in the cell's unit.
    ratio: The second of these by the first.
    direction: Whether that is for the better or the worse.
    first: The number of the first of the runs with which the new level may have begun, by 95 %.
    last: The number of the last of these.
    p: The probability of a change as clear if there is none, adjusted for all tries in this
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
    """Cells that changed in the same direction with the same run.

    since: That run's number.
    until: The number of the run before it.
    direction: Whether that is for the better or the worse.
    ratio: The median of the cells' ratios.
    facts: The changes in the machine between these two runs or, if there are none, between two
        others that are as likely.
    cells: The cells."""

    since: int
    until: int
    direction: ChangedTo
    ratio: float
    facts: tuple[Fact, ...]
    cells: tuple[TrendChange, ...]


class Trend(History, frozen=True, kw_only=True):
    """A history with its changes.

    changes: Where cells changed, in the order of time.
    """

    changes: tuple[SharedChange, ...]

    @property
    def few(self) -> int:
        """The cells with fewer than six runs, in which no change can be found."""
        return sum(len(one.points) < 2 * LEAST for one in self.series)


class _Found(NamedTuple):
    """A change of a series. `at`, and `first` to `last`, are places in the order of runs."""

    one: Series
    change: ChangePoint
    direction: ChangedTo
    at: int
    first: int
    last: int


def trend_of(history: History, least: float = LEAST_CHANGE) -> Trend:
    """The trend with its changes of at least this fraction. Cells share a change if they changed in
    the same direction and its run is as likely as their own."""
    order = {run.number: at for at, run in enumerate(history.runs)}
    found = [each for one in history.series for each in _changes(one, order)]
    most = holding([each.change.p for each in found], len(history.series))
    left = [each for each in found if each.change.p <= most and abs(each.change.ratio - 1) >= least]
    changes = []
    while left:
        (at, direction), _ = Counter((each.at, each.direction) for each in left).most_common(1)[0]
        same = [e for e in left if e.direction == direction and e.first <= at <= e.last]
        left = [each for each in left if each not in same]
        changes.append((at, _change(at, direction, same, history)))
    changes.sort(key=lambda found: found[0])
    return Trend(**asdict(history), changes=tuple(change for _, change in changes))


def _changes(one: Series, order: dict[int, int]) -> Iterator[_Found]:
    for change in change_points([point.figure for point in one.points]):
        places = (order[one.points[n].run] for n in (change.at, change.first, change.last))
        yield _Found(one, change, changed_to(change.ratio, one.better), *places)


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
    """The facts in which two runs differ; null is a value that a run lacks."""
    facts = facts_apart(history.states[before.state], history.states[after.state])
    if before.label != after.label:
        facts += (Fact(LABEL, (before.label, after.label)),)
    return facts

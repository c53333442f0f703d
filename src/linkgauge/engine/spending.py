"""Decides on which cells of a plan a user's time budget is spent.

As many benchmarks as possible get three repetitions of each cell, the most wanted first. A
benchmark begins only if the time left is enough for all repetitions that earlier cells still lack,
as estimated from their first repetitions. All chosen cells are measured once before a cell is
repeated, so that a cell's repetitions are far apart."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable, Mapping, Sequence
from itertools import chain
from statistics import median

from linkgauge.model.documents.result import PlannedTable
from linkgauge.model.settings import REPETITION_SECONDS, Budget

from .enough import REPETITIONS
from .plan import setup_seconds

_RECENT = 9
"""The number of recent repetitions from which the time of the next one is estimated."""

Group = tuple[int, ...]
"""The cells that are measured at the same time, by their numbers."""


class Spending:
    """Chooses the cells to measure. `tables` is the tables' indices in the order of their turns.
    After `until` seconds of measuring, no cell is repeated for precision. `groups` is the
    measurable cells of each table. `class_of` returns equal values for equivalent cells."""

    def __init__(
        self,
        plan: Sequence[PlannedTable],
        budget: Budget,
        groups: Mapping[int, Sequence[Group]],
        class_of: Callable[[int], Hashable],
    ) -> None:
        rank = {name: number for number, name in enumerate(budget.order)}
        self.tables = sorted(range(len(plan)), key=lambda table: rank[plan[table].benchmark])
        self.until = min(budget.passes, budget.measuring)
        self._end = budget.measuring
        self._reaches = True
        self._class_of = class_of
        self._next = [deque(groups[table]) for table in self.tables]
        """The groups of each table that were not measured yet."""
        self._group_of = {key: group for group in chain(*self._next) for key in group}
        self._usual = {
            group: REPETITION_SECONDS + setup_seconds(plan[table].size)
            for table, own in zip(self.tables, self._next, strict=True)
            for group in own
        }
        """The seconds of a repetition of each group, as estimated from its size."""
        self._own: dict[Group, float] = {}
        """The seconds of the last repetition of each group."""
        self._equivalent: dict[Hashable, deque[float]] = {}
        """The seconds of the last repetitions of equivalent groups."""

    def took(self, key: int, seconds: float) -> None:
        """Records the seconds of a group's repetition, if `key` is the first cell of a group."""
        group = self._group_of.get(key)
        if group is None:
            return
        if key == group[0]:
            self._own[group] = seconds
            self._equivalent.setdefault(self._kind(group), deque(maxlen=_RECENT)).append(seconds)

    def _kind(self, group: Group) -> Hashable:
        return self._class_of(group[0]), len(group)

    def _cost(self, group: Group) -> float | None:
        """Estimates a repetition's seconds. Returns None if no equivalent cell was measured."""
        equivalent = self._equivalent.get(self._kind(group))
        if equivalent is None:
            return None
        # At most twice the median: a first repetition may have searched for a kernel.
        return min(self._own.get(group, median(equivalent)), 2 * median(equivalent))

    def still_to_come(self, seconds: float) -> int:
        """Estimates how many repetitions of cells never measured fit in this many seconds."""
        cells = sum(len(group) for left in self._next for group in left) if self._reaches else 0
        repeated = sum(map(len, self._own))
        fitting = repeated * seconds / max(sum(self._own.values()), 1e-9)
        return int(max(0.0, min(REPETITIONS * cells, fitting)))

    @property
    def _slowdown(self) -> float:
        """The last repetitions' time divided by their estimate by size; 0 before the first."""
        usual = sum(self._usual[group] for group in self._own)
        return sum(self._own.values()) / usual if usual else 0.0

    def reserved(self, lacking: Mapping[int, int]) -> float:
        return sum(
            repetitions * (self._cost(group) or 0.0)
            for key, repetitions in lacking.items()
            if (group := self._group_of.get(key)) is not None and key == group[0]
        )

    def reach(self, seconds: float) -> dict[int, None]:
        """Returns as many cells of the next benchmark as fit into `seconds` with all repetitions. A
        cell is returned alone if no equivalent cell was measured before."""
        found: dict[int, None] = {}
        for left in self._next if self._reaches else ():
            while left:
                cost = self._cost(left[0])
                if cost is None and found:
                    return found
                guess = self._usual[left[0]] * self._slowdown if cost is None else cost
                if REPETITIONS * guess > seconds:
                    return found
                found |= dict.fromkeys(left.popleft())
                if cost is None:
                    return found
                seconds -= REPETITIONS * cost
            if found:
                return found
        return found

    def end_reaching(self) -> None:
        self._reaches, self.until = False, self._end

"""Plans the visits of cells. A visit is one round of samples. A run visits a cell several times,
with different buffers and at different moments, as another run would.

A run goes over its plan in passes. The first passes show how similar cells vary between visits.
Further passes visit cells whose interval is not yet narrow enough. A cell ends when its interval is
narrow enough, when its time is used up, or when more visits would not make the interval narrower.
If the run has a time budget, a pass after the first visits only those cells for which there is time
left, beginning with the least precise ones; once the budget is used, all cells end. A budget that
the user gave decides from the first pass on which cells are visited (`spending`). The next visit
depends only on earlier visits, so an interrupted run resumes where it stopped."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Collection, Hashable, Iterable, Iterator, Sequence
from itertools import count

import msgspec
from msgspec.structs import replace

from linkgauge.engine.measuring.merging import merge, spent
from linkgauge.engine.workers.messages import Visit
from linkgauge.model.documents.result import CellResult, PlannedCell, PlannedTable
from linkgauge.model.grouped import Shared
from linkgauge.model.notes import Imprecise
from linkgauge.model.settings import Budget, Settings
from linkgauge.model.stats.summary import relative_error
from linkgauge.model.transfer import Place

from .alike_cells import class_of
from .enough import VISITS, is_done, is_enough, least_visits
from .spending import Spending, groups_of

_PICKED = 24
"""The number of cells that are visited several times to show how alike cells vary. If there are
more alike cells, the others are visited once, and again only if their figure is not precise
enough."""
_OVER = 0.2
"""The share of the time left for the end of a run by which a visit may exceed the time for
measuring, before it is given up."""


class CellAt(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A cell in a plan: the index of its table, and its place in the table."""

    sheet: int
    place: Place


class Visits:
    """The visits that a run has made, and the visits that it will make next."""

    def __init__(
        self,
        plan: Sequence[PlannedTable],
        settings: Settings,
        budget: Budget | None = None,
        *,
        is_crowded: bool = False,
    ) -> None:
        self._plan = plan
        self._always = VISITS if is_crowded else 1
        """The visits that every cell gets, whatever time they take. Where ranks share CPUs, a
        single visit shows above all which ranks had one."""
        self._settings = settings
        self._budget = budget
        self.at = 0.0
        """The seconds of measuring so far, in a run with a time budget."""
        self._took: dict[int, float] = {}
        """The seconds of the last visit of each cell."""
        self._cut: set[int] = set()
        """The cells that ended because the time budget was used."""
        self._together: dict[int, list[int]] = {}
        """The cells that are measured at the same time as a cell, which is among them."""
        rounds: defaultdict[tuple[int, int], list[int]] = defaultdict(list)
        self._members: defaultdict[Hashable, list[int]] = defaultdict(list)
        self._settings_of: dict[Hashable, Settings] = {}
        """The settings of the cells of each class."""
        self._repetitions: dict[Hashable, int] = {}
        self._keys = _keys_of(plan)
        self._class_of: list[Hashable] = [None] * sum(map(len, self._keys))
        self._taken: list[tuple[CellResult, ...]] = [()] * len(self._class_of)
        """The visits of each cell so far."""
        shared = Shared()  # racks have thousands of similar cells
        for number, sheet in enumerate(plan):
            for cell in sheet.cells:
                key = self._keys[number][cell.place]
                self._class_of[key] = kind = shared((class_of(sheet, cell), cell.reason is None))
                self._members[kind].append(key)
                if kind not in self._settings_of:
                    self._settings_of[kind] = settings.of(cell)
                    self._repetitions[kind] = VISITS if cell.does.product else 1
                if cell.round is not None:
                    rounds[number, cell.round].append(key)
                    self._together[key] = rounds[number, cell.round]
        self._spending = None if budget is None or not budget.order else self._ordered(budget)
        self._picked = set(self._pick())
        self._ended: set[int] = set()
        self._merged: dict[Hashable, dict[int, CellResult]] = {}
        self._waiting: Counter[Hashable] = Counter()
        self._due: dict[int, None] = {}
        self._again: set[int] = set()
        """The cells to be visited once more at the end, whatever time they took before."""
        self.turn = -1
        """The number of the pass, from 0."""
        self._begin_pass()

    def _begin_pass(self) -> None:
        self._due, budget = {}, self._budget
        if budget is not None and self._spending is not None:
            self.turn += 1
            self._due = self._spent_on(self._spending)
        else:
            open_keys = [key for key in range(len(self._taken)) if key not in self._ended]
            while open_keys and not self._due:
                self.turn += 1
                self._due = dict.fromkeys(key for key in open_keys if self._is_due(key))
            if self.turn and budget is not None and self._due:
                self._due = self._affordable(self._due, budget.passes - self.at)
        if budget is not None and not self._due:
            self._end_all()
        self._waiting = Counter(self._class_of[key] for key in self._due)

    def _ordered(self, budget: Budget) -> Spending:
        groups = dict(groups_of(self._plan, self._keys, self._together))
        return Spending(self._plan, budget, groups, self._class_of.__getitem__)

    def _spent_on(self, spending: Spending) -> dict[int, None]:
        """Returns the cells of the next pass of a run with a budget that the user gave: cells that
        are reached for the first time, else those that lack visits, else the least precise."""
        done = self._enough()
        reached = [key for key, visits in enumerate(self._taken) if visits and key not in done]
        lacking = {key: lack for key in reached if (lack := self._lack(key)) > 0}
        seconds = spending.until - self.at
        if found := spending.reach(seconds - spending.reserved(lacking)):
            return found
        if lacking:
            most = max(lacking.values())
            return {key: None for key, lack in lacking.items() if lack == most}
        return self._affordable(reached, seconds)

    def _lack(self, key: int) -> int:
        return self._least_of(key) - len(self._taken[key])

    def order(self) -> Sequence[int]:
        """Returns the indices of the tables in the order in which this pass measures them. The
        second visits are made in reverse, so that drift over time is not attributed to a table."""
        if self._spending is None:
            return range(len(self._plan))[:: -1 if self.turn == 1 else 1]
        is_second = {len(self._taken[key]) for key in self._due} == {1}
        return self._spending.tables[:: -1 if is_second else 1]

    def _affordable(self, keys: Collection[int], seconds: float) -> dict[int, None]:
        """Returns those of these cells for which there is time, the least precise first. Cells that
        are measured at the same time stay together."""
        merged = {key: self._merge(self._class_of[key])[key] for key in keys}
        lack = {key: relative_error(cell.summary) or math.inf for key, cell in merged.items()}
        chosen: dict[int, None] = {}
        for key in sorted(keys, key=lambda key: (-lack[key], self._took.get(key, 0.0))):
            group = self._together.get(key, [key])
            cost = sum(self._took.get(one, 0.0) for one in group)
            if key not in chosen and cost <= seconds:
                seconds -= cost
                chosen |= dict.fromkeys(group)
        return {key: None for key in keys if key in chosen}

    def _end_all(self) -> None:
        """Ends all cells, because the time budget is used."""
        every = range(len(self._taken))
        if self._spending is not None:
            self._ended |= self._enough()
        self._cut.update(key for key in every if key not in self._ended)
        self._ended.update(every)
        self._due = {}

    @property
    def is_over(self) -> bool:
        """Whether the run's time budget is used."""
        return self._budget is not None and self.at >= self._budget.measuring

    def unreached(self) -> Iterator[tuple[int, PlannedCell]]:
        """Yields the cells that the time budget left without a visit, with the index of their
        table."""
        for number, (sheet, keys) in enumerate(zip(self._plan, self._keys, strict=True)):
            for cell in sheet.cells:
                if keys[cell.place] in self._cut and not self._taken[keys[cell.place]]:
                    yield number, cell

    def _is_due(self, key: int) -> bool:
        """Whether this pass visits a cell: until its least number of visits, or its end."""
        return self.turn < self._least_of(key) or self.turn >= self._least(self._class_of[key])

    def _pick(self) -> Iterator[int]:
        """Yields cells picked evenly from each class. Cells that are measured at the same time as a
        picked cell are picked, too."""
        for keys in self._members.values():
            some = keys[:: max(1, len(keys) // _PICKED)]
            found: dict[int, None] = {}
            for key in some:
                if len(found) < len(some):
                    found |= dict.fromkeys(self._together.get(key, (key,)))
            yield from found

    def _least_of(self, key: int) -> int:
        kind = self._class_of[key]
        is_sure = self._spending is not None or self._always > 1 or key in self._picked
        return self._least(kind) if is_sure else 1

    def add(self, sheet: int, cell: CellResult, at: float | None = None) -> None:
        """Adds a visit that has ended, after `at` seconds of measuring."""
        key = self._keys[sheet][cell.place]
        self._taken[key] = (*self._taken[key], cell)
        if at is not None:
            self._took[key], self.at = at - self.at, at
            if self._spending is not None:
                self._spending.took(key, self._took[key])
        if self.is_over:
            self._end_all()
        kind = self._class_of[key]
        self._merged.pop(kind, None)
        if key not in self._due:
            return
        del self._due[key]
        self._waiting[kind] -= 1
        if not self._waiting[kind]:
            self._end_those_that_are_done(kind)
        if not self._due:
            self._begin_pass()

    def again(self, cells: Iterable[CellAt]) -> None:
        """Adds a pass over these cells at the end of the run. Cells that are measured at the same
        time are visited, too. Each cell gets time for another visit. A budget that the user gave is
        then used to its end."""
        keys = [self._keys[cell.sheet][cell.place] for cell in cells]
        asked = {one for key in keys for one in self._together.get(key, (key,))}
        self._again = asked
        if self.has_time_left and self._spending is not None:
            self._spending.end_reaching()
            self._ended -= self._cut
            self._cut.clear()
        if not asked:
            self._begin_pass()
            return
        if not self._due:
            self.turn += 1
        self._due = dict.fromkeys(sorted(asked))
        self._waiting = Counter(self._class_of[key] for key in self._due)

    @property
    def has_time_left(self) -> bool:
        """Whether a budget of the user has time left for cells that lack their precision."""
        return self._spending is not None and bool(self._cut) and not self.is_over

    def left(self) -> tuple[tuple[PlannedCell, ...], ...]:
        """Returns the cells of each table that this pass has not visited yet; none at the end of
        the run."""
        return tuple(
            tuple(cell for cell in sheet.cells if keys[cell.place] in self._due)
            for sheet, keys in zip(self._plan, self._keys, strict=True)
        )

    def count_left(self) -> int:
        """Returns the number of visits still to come, as far as it is known now."""
        spending = self._spending
        lacking = {
            key: max(key in self._due, self._lack(key))
            for key, visits in enumerate(self._taken)
            if (key not in self._ended and (visits or spending is None)) or key in self._due
        }
        more = 0
        if spending is not None:
            more = spending.still_to_come(spending.until - self.at - spending.reserved(lacking))
        return sum(lacking.values()) + more

    def visit(self, sheet: int, cell: PlannedCell) -> Visit:
        """Returns the next visit of a cell in this pass."""
        key = self._keys[sheet][cell.place]
        visits = self._taken[key]
        samples = sum(len(visit.samples) for visit in visits)
        is_bounded = self._spending is None and key not in self._again
        used = spent(*visits) if is_bounded else 0.0
        most = None
        if self._budget is not None and self._settings.simulation is None:
            left = self._budget.most - self._budget.measuring
            most = self._budget.measuring + _OVER * left - self.at
        number = self.turn if self._spending is None else len(visits)
        return Visit(number, samples, used, self._plan[sheet].benchmark, most=most)

    def is_whole(self, sheet: int) -> bool:
        """Whether the results of a table are final. All its cells must have ended, and all similar
        cells, because intervals depend on them."""
        kinds = {self._class_of[key] for key in self._keys[sheet].values()}
        return all(key in self._ended for kind in kinds for key in self._members[kind])

    def cells(self, sheet: int) -> list[CellResult]:
        """Returns the visited cells of a table in the plan's order, each with its visits merged."""
        taken = [key for key in self._keys[sheet].values() if self._taken[key]]
        return [self._ended_by_budget(key, self._merge(self._class_of[key])[key]) for key in taken]

    def _ended_by_budget(self, key: int, merged: CellResult) -> CellResult:
        """Returns the merged cell. If it would have been visited again, it says why it was not."""
        if key not in self._cut or merged.stopped not in ("noise", "max-time"):
            return merged
        if self._spending is None:
            return replace(merged, stopped="budget") if merged.stopped == "noise" else merged
        notes = tuple(
            replace(note, budget=True) if isinstance(note, Imprecise) else note
            for note in merged.notes
        )
        return replace(merged, stopped="budget", notes=notes)

    def _least(self, kind: Hashable) -> int:
        """Returns the least number of visits of each picked cell of a class."""
        if self._settings.samples is not None:
            return 1
        if self._settings_of[kind].samples is not None:
            return self._repetitions[kind]
        if self._spending is not None:
            return VISITS
        return max(least_visits(len(self._members[kind])), self._always)

    def _merge(self, kind: Hashable) -> dict[int, CellResult]:
        if kind not in self._merged:
            keys = [key for key in self._members[kind] if self._taken[key]]
            merged = merge([self._taken[key] for key in keys], self._settings)
            self._merged[kind] = found = dict(zip(keys, merged, strict=True))
            for key, cell in found.items():
                if len(self._taken[key]) == 1:  # one value takes the memory of two
                    self._taken[key] = (cell,)
        return self._merged[kind]

    def _end_those_that_are_done(self, kind: Hashable) -> None:
        if self._spending is not None:  # which ends all cells at once
            return
        least, settings = self._least(kind), self._settings_of[kind]
        if self.turn + 1 < least and not any(map(self._may_end, self._members[kind])):
            return
        done = {
            key
            for key, one in self._merge(kind).items()
            if is_done(one, self._least_of(key), settings, self._always)
        }
        self._ended |= self._whole_rounds(done)

    def _whole_rounds(self, done: set[int]) -> set[int]:
        """Returns these cells without those measured together with a similar one that is not among
        them."""
        of = self._class_of
        return {
            key
            for key in done
            if all(one in done or of[one] != of[key] for one in self._together.get(key, ()))
        }

    def _enough(self) -> set[int]:
        """Returns the visited cells that need no more visits, although there is time."""
        found: set[int] = set()
        for kind in {self._class_of[key] for key, visits in enumerate(self._taken) if visits}:
            settings = self._settings_of[kind]
            found |= {
                key
                for key, one in self._merge(kind).items()
                if is_enough(one, self._least_of(key), settings)
            }
        return self._whole_rounds(found)

    def _may_end(self, key: int) -> bool:
        """Whether a cell may end early, because its time is over or a visit failed."""
        visits = self._taken[key]
        longest = self._settings_of[self._class_of[key]].max_time
        return spent(*visits) >= longest or any(v.status != "pass" for v in visits)


def _keys_of(plan: Sequence[PlannedTable]) -> list[dict[Place, int]]:
    """Returns the numbers of each table's cells, which are counted in the plan's order."""
    numbers = count()
    return [
        dict(zip(dict.fromkeys(cell.place for cell in sheet.cells), numbers, strict=False))
        for sheet in plan
    ]

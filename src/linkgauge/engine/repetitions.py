"""Plans repetitions. A repetition takes samples of a cell again, with other buffers and later.

A run goes over its plan in passes. The first passes show how equivalent cells vary; later passes
repeat the cells whose interval is too wide. A cell ends when its interval is narrow enough, its
time is used, or more repetitions would not help. Under a time budget, later passes take the least
precise cells first, while time is left. If the user gave the budget, `spending` decides from the
first pass on which cells are measured. The next repetition depends only on earlier ones, so an
interrupted run resumes where it stopped."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Sequence
from operator import attrgetter
from typing import TYPE_CHECKING

import msgspec
from msgspec.structs import replace

from linkgauge.engine.measuring.merging import merge, spent
from linkgauge.engine.workers.outcomes import Repetition
from linkgauge.model.documents.result import CellResult, PlannedCell, PlannedTable
from linkgauge.model.notes import Imprecise
from linkgauge.model.settings import Budget, Settings
from linkgauge.model.stats.summary import relative_error
from linkgauge.model.transfer import Place

from .enough import (
    PRODUCT_REPETITIONS,
    REPETITIONS,
    class_of,
    is_done,
    is_enough,
    least_repetitions,
)

if TYPE_CHECKING:
    from .spending import Spending

_PICKED = 24
"""The number of cells that are repeated several times to show how equivalent cells vary. If there
are more equivalent cells, the others are measured once, and again only if their figure is not
precise enough."""
_OVER = 0.2
"""The share of the time left for the end of a run by which a repetition may exceed the time for
measuring, before it is given up."""


class CellAt(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A cell in a plan: the index of its table, and its place in the table."""

    table: int
    place: Place


class _Peers(msgspec.Struct, eq=False):
    """Equivalent cells. `always` is how many repetitions each cell gets, however long they take."""

    settings: Settings
    always: int
    cells: list[_Cell] = []
    merged: bool = False


class _Cell(msgspec.Struct, eq=False):
    """A planned cell. `table` is the index of its table. `together` are the cells measured at once,
    this one included. `took` is the seconds of the last repetition. `cut` is true if the time
    budget ended the cell."""

    table: int
    planned: PlannedCell
    peers: _Peers
    together: list[_Cell]
    taken: tuple[CellResult, ...] = ()
    merged: CellResult | None = None
    took: float = 0.0
    picked: bool = False
    ended: bool = False
    cut: bool = False


class Repetitions:
    def __init__(
        self,
        plan: Sequence[PlannedTable],
        settings: Settings,
        budget: Budget | None = None,
        *,
        is_oversubscribed: bool = False,
    ) -> None:
        self._plan, self._settings, self._budget = plan, settings, budget
        self.at = 0.0
        """The seconds of measuring so far, in a run with a time budget."""
        self.turn = -1
        """The number of the pass, from 0."""
        self._again: set[_Cell] = set()
        """The cells to be repeated once more at the end, whatever time they took before."""
        self._due: set[_Cell] = set()
        """The cells that this pass has yet to measure."""
        self._waiting: Counter[_Peers] = Counter()
        """Their number, by their equivalents."""
        self._cells: list[_Cell] = []
        self._tables: list[dict[Place, _Cell]] = [{} for _ in plan]
        classes: dict[Hashable, _Peers] = {}
        for number, (own, table) in enumerate(zip(self._tables, plan, strict=True)):
            rounds: dict[int, list[_Cell]] = {}
            for cell in table.cells:
                kind = class_of(table, cell), cell.reason is None
                if kind not in classes:
                    always = _always(cell, settings, is_oversubscribed)
                    classes[kind] = _Peers(settings.of(cell), always)
                peers = classes[kind]
                together = [] if cell.round is None else rounds.setdefault(cell.round, [])
                one = _Cell(number, cell, peers, together)
                own[cell.place] = one
                for group in (self._cells, together, peers.cells):
                    group.append(one)
        for peers in classes.values():
            _pick(peers.cells)
        self._spending: Spending[_Cell] | None = None
        if budget is not None and budget.order:
            from .spending import Spending  # loaded where the user gave a time

            groups = [
                list(dict.fromkeys(
                    tuple(one.together) for one in own.values() if one.planned.reason is None
                ))
                for own in self._tables
            ]  # fmt: skip
            self._spending = Spending(plan, budget, groups, attrgetter("peers"))
        self._begin_pass()

    def _begin_pass(self) -> None:
        due: Collection[_Cell] = ()
        if self._spending is not None:
            self.turn += 1
            due = self._spent_on(self._spending)
        else:
            left = [one for one in self._cells if not one.ended]
            while left and not due:
                self.turn += 1
                # Until its least number of repetitions, or its end.
                due = [one for one in left if self.turn < self._least_of(one)
                       or self.turn >= self._least(one.peers)]  # fmt: skip
            if self.turn and self._budget is not None and due:
                due = self._affordable(due, self._budget.passes - self.at)
        if self._budget is not None and not due:
            self._end_all()
        self._repetition_now(due)

    def _repetition_now(self, due: Iterable[_Cell]) -> None:
        self._due = set(due)
        self._waiting = Counter(map(attrgetter("peers"), self._due))

    def _spent_on(self, spending: Spending[_Cell]) -> Collection[_Cell]:
        """Returns the cells to measure next under a user's time budget: unmeasured cells, else
        cells that lack repetitions, else the least precise cells."""
        done = self._enough()
        reached = [one for one in self._cells if one.taken and one not in done]
        lacks = {one: self._least_of(one) - len(one.taken) for one in reached}
        lacking = {one: lack for one, lack in lacks.items() if lack > 0}
        seconds = spending.until - self.at
        if found := spending.reach(seconds - spending.reserved(lacking)):
            return found
        if lacking:
            most = max(lacking.values())
            return [one for one, lack in lacking.items() if lack == most]
        return self._affordable(reached, seconds)

    def order(self) -> Sequence[int]:
        """Returns the tables' indices in this pass's order. Second repetitions go backwards, so
        that drift over time does not look like a difference between tables."""
        if self._spending is None:
            return range(len(self._plan))[:: -1 if self.turn == 1 else 1]
        is_second = {len(one.taken) for one in self._due} == {1}
        return self._spending.tables[:: -1 if is_second else 1]

    def _affordable(self, cells: Collection[_Cell], seconds: float) -> list[_Cell]:
        """Picks the least precise cells for which there is time. Cells of a round stay together."""
        lack = {one: relative_error(self._merged(one).summary) or math.inf for one in cells}
        chosen = set[_Cell]()
        for one in sorted(cells, key=lambda one: (-lack[one], one.took)):
            cost = sum(other.took for other in one.together)
            if one not in chosen and cost <= seconds:
                seconds -= cost
                chosen.update(one.together)
        return [one for one in cells if one in chosen]

    def _end_all(self) -> None:
        for one in self._enough() if self._spending is not None else ():
            one.ended = True
        for one in self._cells:
            one.cut |= not one.ended
            one.ended = True
        self._due.clear()

    @property
    def is_over(self) -> bool:
        return self._budget is not None and self.at >= self._budget.measuring

    def unreached(self) -> Iterator[tuple[int, PlannedCell]]:
        """Yields the cells that the budget left unmeasured, with the index of their table."""
        for one in self._cells:
            if one.cut and not one.taken:
                yield one.table, one.planned

    def _least_of(self, one: _Cell) -> int:
        is_sure = self._spending is not None or one.peers.always > 1 or one.picked
        return self._least(one.peers) if is_sure else 1

    def add(self, table: int, cell: CellResult, at: float | None = None) -> None:
        """Adds a repetition that has ended, after `at` seconds of measuring."""
        one = self._tables[table][cell.place]
        one.taken = (*one.taken, cell)
        one.peers.merged = False
        if at is not None:
            one.took, self.at = at - self.at, at
            if self._spending is not None:
                self._spending.took(one, one.took)
        if self.is_over:
            self._end_all()
        if one not in self._due:
            return
        self._due.remove(one)
        self._waiting[one.peers] -= 1
        if not self._waiting[one.peers]:
            self._end_those_that_are_done(one.peers)
        if not self._due:
            self._begin_pass()

    def again(self, cells: Iterable[CellAt]) -> None:
        """Adds a pass over these cells and all cells measured with them, even if their time is used
        up. The time left of a user's budget is then spent on imprecise cells."""
        self._again = set()
        for cell in cells:
            self._again.update(self._tables[cell.table][cell.place].together)
        if self.has_time_left and self._spending is not None:
            self._spending.end_reaching()
            for one in self._cells:
                one.ended &= not one.cut
                one.cut = False
        if not self._again:
            self._begin_pass()
            return
        if not self._due:
            self.turn += 1
        self._repetition_now(self._again)

    @property
    def has_time_left(self) -> bool:
        """Whether the user's budget has time left for cells that are not precise enough."""
        is_cut = self._spending is not None and any(one.cut for one in self._cells)
        return is_cut and not self.is_over

    def shown(self) -> list[int]:
        """Returns the indices of the tables that are a run's results: others have no cell yet."""
        every = enumerate(self._tables)
        return [at for at, own in every if not own or any(map(attrgetter("taken"), own.values()))]

    def left(self) -> list[list[PlannedCell]]:
        """Returns each table's cells that this pass has yet to measure; none at the end."""
        tables = (own.values() for own in self._tables)
        return [[one.planned for one in own if one in self._due] for own in tables]

    def usual_seconds(self, of: Callable[[PlannedTable, PlannedCell], float]) -> float:
        """Estimates the seconds until all cells have their least number of repetitions."""
        return sum(
            self._least_of(one) * of(self._plan[one.table], one.planned)
            for one in self._cells
            if one.planned.reason is None and one is one.together[0]
        )

    def count_left(self) -> int:
        spending = self._spending
        lacking = {
            one: max(one in self._due, self._least_of(one) - len(one.taken))
            for one in self._cells
            if (not one.ended and (one.taken or spending is None)) or one in self._due
        }
        more = 0
        if spending is not None:
            more = spending.still_to_come(spending.until - self.at - spending.reserved(lacking))
        return sum(lacking.values()) + more

    def repetition(self, table: int, cell: PlannedCell) -> Repetition:
        one = self._tables[table][cell.place]
        is_bounded = self._spending is None and one not in self._again
        used = spent(*one.taken) if is_bounded else 0.0
        most = None
        if self._budget is not None and self._settings.simulation is None:
            left = self._budget.most - self._budget.measuring
            most = self._budget.measuring + _OVER * left - self.at
        number = self.turn if self._spending is None else len(one.taken)
        samples = sum(len(each.samples) for each in one.taken)
        return Repetition(number, samples, used, self._plan[table].benchmark, most=most)

    def is_whole(self, table: int) -> bool:
        """Whether a table's results are final: all cells equivalent to its cells have ended."""
        classes = {one.peers for one in self._tables[table].values()}
        return all(one.ended for peers in classes for one in peers.cells)

    def cells(self, table: int) -> list[CellResult]:
        """Returns a table's measured cells in the plan's order, with their repetitions merged."""
        found: list[CellResult] = []
        for one in self._tables[table].values():
            if not one.taken:
                continue
            merged = self._merged(one)
            by_user = self._spending is not None
            if one.cut and merged.stopped in (("noise", "max-time") if by_user else ("noise",)):
                notes = tuple(
                    replace(note, budget=by_user or note.budget)
                    if isinstance(note, Imprecise)
                    else note
                    for note in merged.notes
                )
                merged = replace(merged, stopped="budget", notes=notes)
            found.append(merged)
        return found

    def _least(self, peers: _Peers) -> int:
        if self._settings.samples is not None:
            return 1
        if peers.settings.samples is not None:
            return peers.always
        if self._spending is not None:
            return REPETITIONS
        fewest = 1 if peers.settings.simulation is not None else REPETITIONS
        return max(least_repetitions(len(peers.cells)), peers.always, fewest)

    def _merged(self, one: _Cell) -> CellResult:
        if not one.peers.merged:
            one.peers.merged = True
            cells = list(filter(attrgetter("taken"), one.peers.cells))
            found = merge(list(map(attrgetter("taken"), cells)), self._settings)
            for cell, merged in zip(cells, found, strict=True):
                cell.merged = merged
                if len(cell.taken) == 1:  # one value takes the memory of two
                    cell.taken = (merged,)
        assert one.merged is not None  # noqa: S101  # it was measured
        return one.merged

    def _end_those_that_are_done(self, peers: _Peers) -> None:
        if self._spending is not None:  # which ends all cells at once
            return
        if self.turn + 1 < self._least(peers) and not any(map(_may_end, peers.cells)):
            return
        done = set[_Cell]()
        for one in filter(attrgetter("taken"), peers.cells):
            if is_done(self._merged(one), self._least_of(one), peers.settings, peers.always):
                done.add(one)
        for one in _whole_rounds(done):
            one.ended = True

    def _enough(self) -> set[_Cell]:
        return _whole_rounds({
            one for one in self._cells if one.taken
            and is_enough(self._merged(one), self._least_of(one), one.peers.settings)
        })  # fmt: skip


def _always(cell: PlannedCell, settings: Settings, is_oversubscribed: bool) -> int:
    if cell.does.product is None:
        return REPETITIONS if is_oversubscribed else 1
    on_device = any(transfer.engine.owner.is_device for transfer in cell.transfers)
    # The speed of a product varies with the card's power.
    return PRODUCT_REPETITIONS if on_device and settings.simulation is None else REPETITIONS


def _pick(peers: Sequence[_Cell]) -> None:
    some = peers[:: max(1, len(peers) // _PICKED)]
    picked = set[_Cell]()
    for one in some:
        if len(picked) < len(some):
            picked.update(one.together)
    for one in picked:
        one.picked = True


def _whole_rounds(done: set[_Cell]) -> set[_Cell]:
    return {
        one
        for one in done
        if all(other in done or other.peers is not one.peers for other in one.together)
    }


def _may_end(one: _Cell) -> bool:
    is_over = spent(*one.taken) >= one.peers.settings.max_time
    return is_over or not {"pass"}.issuperset(map(attrgetter("status"), one.taken))

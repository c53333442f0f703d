"""Builds the state of a run from its records, one by one."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from linkgauge.model.documents.result import Run

from .journal import (
    Again,
    Closed,
    MeasuredRepetition,
    Opened,
    Record,
    assemble,
    follow,
    opening,
)

if TYPE_CHECKING:
    from .soak_state import SoakState


class PreciseRun:
    """The state of a run that measures until its figures are precise enough."""

    def __init__(self, opened: Opened) -> None:
        self.opened = opened
        self.repetitions = opened.repetitions()
        self.is_settled = False
        """Whether the run has already chosen the doubtful cells to measure again."""
        self._known: list[Record] = [opened]

    @property
    def at(self) -> float:
        return self.repetitions.at

    @property
    def seconds_left(self) -> float | None:
        """The seconds left of the user's budget; None without a budget and if simulated."""
        budget = self.opened.budget
        if budget is None or not budget.order or self.opened.settings.simulation is not None:
            return None
        return max(0.0, budget.measuring - self.at)

    @property
    def is_complete(self) -> bool:
        return any(isinstance(record, Closed) for record in self._known)

    def add(self, record: Record) -> None:
        self.is_settled |= isinstance(record, Again)
        if not isinstance(record, MeasuredRepetition):  # whose cells `repetitions` keeps
            self._known.append(record)
        follow(self.repetitions, record)

    def run(self) -> Run:
        """Returns the run that the records so far describe."""
        return assemble(self._known, self.repetitions.cells)


def state_of(records: Iterable[Record]) -> PreciseRun | SoakState:
    """Returns a run's state after these records. Raises InputError if the first holds no plan."""
    following = iter(records)
    first = next(following, None)
    opened = opening(() if first is None else (first,))
    state: PreciseRun | SoakState
    if opened.settings.soak is None:
        state = PreciseRun(opened)
    else:
        from .soak_state import SoakState  # its statistics are loaded for what repeats alone

        state = SoakState(opened)
    for record in following:
        state.add(record)
    return state

"""What the records of a run come to, added one by one as they are read or made."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from linkgauge.model.result import Run

from .course import Course
from .journal import Again, Closed, Opened, Record, assemble, follow, opening
from .visits import Visits


class Book(Protocol):
    """A run so far. `is_closed`: it has come to its end."""

    opened: Opened
    is_closed: bool

    def add(self, record: Record) -> None:
        """The next record."""

    def run(self) -> Run:
        """The run in the records so far."""


class PreciseRun:
    """A run that measures until its figures are precise: every record of it."""

    def __init__(self, opened: Opened) -> None:
        self.opened = opened
        self.visits = Visits(opened.plan, opened.settings)
        self.is_closed = self.is_settled = False
        """Settled: cells in doubt were already asked for."""
        self._known: list[Record] = [opened]

    def add(self, record: Record) -> None:
        self.is_closed |= isinstance(record, Closed)
        self.is_settled |= isinstance(record, Again)
        self._known.append(record)
        follow(self.visits, record)

    def run(self) -> Run:
        return assemble(self._known, self.visits)


def book_of(records: Iterable[Record]) -> PreciseRun | Course:
    """Raises InputError if the first is not a run's plan."""
    following = iter(records)
    first = next(following, None)
    opened = opening(() if first is None else (first,))
    book = PreciseRun(opened) if opened.settings.soak is None else Course(opened)
    for record in following:
        book.add(record)
    return book

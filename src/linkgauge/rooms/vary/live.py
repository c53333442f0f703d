"""Rounds of runs as their user sees them: a bar while they are measured."""

from __future__ import annotations

from contextlib import ExitStack

from rich.console import Console
from rich.progress import Progress, TaskID

from linkgauge.model.machine import Machine
from linkgauge.model.result import CellResult
from linkgauge.model.variation import Setting
from linkgauge.report.progress import progress_bar

from .rounds import Rounds

MOST = 36
"""Characters before the bar: the whole has 80."""


class LiveRounds(Rounds):
    """Shows which run of which round is measured, and the time left. A context manager, so that its
    bar is removed whatever happens."""

    def __init__(self, errors: Console, runs: int) -> None:
        self._errors = errors
        self._bar = ExitStack()
        self._progress: Progress = progress_bar(errors)
        self._task: TaskID = self._progress.add_task("", total=runs)
        self._begun = self._visits = self._visited = 0
        self._said: set[str] = set()

    def __enter__(self) -> LiveRounds:
        return self

    def __exit__(self, *error: object) -> None:
        self._bar.close()

    def prepares(self, setting: Setting, number: int) -> None:
        if not self._begun:
            self._bar.enter_context(self._progress)
        self._visits = self._visited = 0
        what = f"round {number + 1}, {setting}"
        self._update(description=what if len(what) <= MOST else f"{what[: MOST - 1]}…")
        self._begun += 1

    def begun(self, _machine: Machine) -> None:
        """The bar counts runs."""

    def planned(self, visits: int) -> None:
        self._visits = self._visited + visits

    def finished(self, _cell: CellResult, /) -> None:
        self._visited += 1
        part = min(1.0, self._visited / self._visits) if self._visits else 0.0
        self._update(completed=self._begun - 1 + part)

    def _update(self, description: str | None = None, completed: float | None = None) -> None:
        if not self._progress.disable:
            done = self._begun if completed is None else completed
            self._progress.update(self._task, description=description, completed=done)

    def say(self, line: str) -> None:
        """Each note once, whichever run it comes from."""
        if line not in self._said:
            self._said.add(line)
            self._errors.print(line)

"""Tells a person how a run goes: what runs now, how many of how many, how long still."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from linkgauge.model.result import CellResult, PlannedCell, PlannedSheet, Result


class LiveReport:
    """An observer: what runs now on `progress`, and each whole result to `show`."""

    def __init__(self, progress: Progress, show: Callable[[Result], None]) -> None:
        self._progress = progress
        self._task = progress.add_task("", total=None)
        self._done = 0
        self._show = show

    def planned(self, visits: int) -> None:
        self._progress.update(self._task, total=self._done + visits)

    def started(self, sheet: PlannedSheet, cell: PlannedCell) -> None:
        if not self._progress.disable:
            where = f"{sheet.benchmark} ({cell.row}, {cell.column})"
            self._progress.update(self._task, description=where)

    def finished(self, _cell: CellResult) -> None:
        self._done += 1
        if not self._progress.disable:
            self._progress.advance(self._task)

    def completed(self, result: Result) -> None:
        self._show(result)


@contextmanager
def progress_bar(console: Console) -> Iterator[Progress]:
    """A bar on the console, gone when done; nothing at all where it is not a terminal."""
    progress = Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(bar_width=24),
        MofNCompleteColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
        console=console,
        transient=True,
        disable=not console.is_terminal,
    )
    with progress:
        yield progress

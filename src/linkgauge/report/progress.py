"""Shows a progress bar: what is measured now, how many rounds of samples are done and planned, and
the time left. A cell is sampled in several rounds (visits)."""

from __future__ import annotations

from datetime import timedelta
from math import ceil

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    Task,
    TextColumn,
)
from rich.text import Text

_BAR = 24
_LEAST = 10
"""The columns kept for the running benchmark, however narrow the terminal is."""


def progress_bar(console: Console) -> Progress:
    """Makes a progress bar on the console that disappears at the end. Shows nothing if the console
    is no terminal."""
    return Progress(
        _Doing(console),
        BarColumn(bar_width=_BAR),
        MofNCompleteColumn(),
        TextColumn("left"),
        _TimeLeft(),
        console=console,
        transient=True,
        disable=not console.is_terminal,
    )


def time_left(task: Task) -> str:
    """Returns the time left, estimated from the average duration of all rounds of samples (visits).
    The average of the last visits would vary, because some benchmarks take much longer than
    others."""
    if not task.completed or task.elapsed is None or task.remaining is None:
        return "-:--:--"
    return str(timedelta(seconds=ceil(task.elapsed / task.completed * task.remaining)))


class _Doing(ProgressColumn):
    """A column that shows what is measured now. The text is cut to the width that the other columns
    leave, so that the time left is always shown."""

    def __init__(self, console: Console) -> None:
        super().__init__()
        self._console = console

    def render(self, task: Task) -> Text:
        count = len(f"{task.total or 0:g}") * 2 + 1
        others = _BAR + count + len("left") + len(time_left(task)) + 4
        text = Text(task.description)
        text.truncate(max(_LEAST, self._console.width - others), overflow="ellipsis")
        return text


class _TimeLeft(ProgressColumn):
    max_refresh = 0.5

    def render(self, task: Task) -> Text:
        return Text(time_left(task), "progress.remaining")

"""Shows a progress bar: the current cell, the finished rounds of samples, and the time left."""

from __future__ import annotations

from datetime import timedelta
from math import ceil
from time import monotonic

from rich.console import Console, ConsoleRenderable, RenderHook
from rich.control import Control
from rich.measure import Measurement
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    Task,
    TextColumn,
)
from rich.progress_bar import ProgressBar
from rich.segment import ControlType
from rich.table import Column
from rich.text import Text

_BAR = 24
_LEAST = 10
"""A window without room for both has no bar."""


def progress_bar(console: Console) -> Progress:
    """Returns a progress bar, which is visible only on a terminal that can move its cursor."""
    return _OneLine(
        _Doing(console),
        _Bar(console),
        MofNCompleteColumn(),
        TextColumn("left"),
        _TimeLeft(),
        console=console,
        transient=True,
        disable=not console.is_interactive,
    )


def time_left(task: Task) -> str:
    """Formats the time left: by the mean time of a repetition, but not beyond the time budget."""
    limits = []
    if task.completed and task.elapsed is not None and task.remaining is not None:
        limits.append(task.elapsed / task.completed * task.remaining)
    if (end := task.fields.get("ends_by")) is not None:
        limits.append(max(0.0, end - monotonic()))
    return str(timedelta(seconds=ceil(min(limits)))) if limits else "-:--:--"


class _OneLine(Progress, RenderHook):
    """A bar that erases all of its lines if a narrower window folds it; rich erases only one."""

    _width = 0

    def start(self) -> None:
        if not self.disable:
            self.console.push_render_hook(self)
        super().start()

    def stop(self) -> None:
        super().stop()
        if not self.disable:
            self.console.pop_render_hook()

    def process_renderables(self, renderables: list[ConsoleRenderable]) -> list[ConsoleRenderable]:
        room = self.console.width
        above = ceil(self._width / room) - 1
        found = Measurement.get(self.console, self.console.options, self.get_renderable())
        self._width = min(found.maximum, room)
        up = (ControlType.CURSOR_UP, 1), (ControlType.ERASE_IN_LINE, 2)
        return [*(Control(*up) for _ in range(above)), *renderables]


def _room(console: Console, task: Task) -> int:
    count = len(f"{task.total or 0:g}") * 2 + 1
    return console.width - count - len("left") - len(time_left(task)) - 4


class _Doing(ProgressColumn):
    def __init__(self, console: Console) -> None:
        super().__init__(Column(no_wrap=True))
        self._console = console

    def render(self, task: Task) -> Text:
        text = Text(task.description)
        room = _room(self._console, task)
        text.truncate(max(room - _BAR if room >= _LEAST + _BAR else room, 0), overflow="ellipsis")
        return text


class _Bar(BarColumn):
    def __init__(self, console: Console) -> None:
        super().__init__(bar_width=_BAR)
        self._console = console

    def render(self, task: Task) -> ProgressBar:
        bar = super().render(task)
        if _room(self._console, task) < _LEAST + _BAR:
            bar.width = 0
        return bar


class _TimeLeft(ProgressColumn):
    max_refresh = 0.5

    def render(self, task: Task) -> Text:
        return Text(time_left(task), "progress.remaining")

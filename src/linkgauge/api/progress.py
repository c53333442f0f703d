"""Shows a measurement's progress: messages, and in IPython a line that is overwritten."""

from __future__ import annotations

import sys
import time
from typing import Any

from linkgauge.model.cell_id import spoken
from linkgauge.model.documents.result import CellResult, PlannedCell, PlannedTable
from linkgauge.model.documents.variation import Setting
from linkgauge.model.printable import printable
from linkgauge.rooms.vary.rounds import Rounds

from .calling import Say

WIDTH = 79
EVERY = 0.1
"""The least seconds between two lines."""


def is_watched() -> bool:
    shell: Any = sys.modules.get("IPython")
    return shell is not None and shell.get_ipython() is not None


class ProgressLine(Rounds):
    """Passes messages to `say`. In IPython, also shows progress in a line of stdout."""

    def __init__(self, say: Say) -> None:
        self._say = say
        self._shows = is_watched()
        self._setting, self._at = "", -EVERY
        self._done = self._planned = self._width = 0

    def __enter__(self) -> ProgressLine:
        return self

    def __exit__(self, *error: object) -> None:
        self._show("")

    def prepares(self, setting: Setting, number: int) -> None:
        self._setting = f"round {number + 1}, {setting}: "
        self._done = self._planned = 0

    def planned(self, repetitions: int) -> None:
        self._planned = self._done + repetitions

    def started(self, table: PlannedTable, cell: PlannedCell) -> None:
        at = f"{self._done + 1} of {max(self._planned, self._done + 1)}"
        self.now(f"{self._setting}{at}: {spoken(table, cell)}")

    def now(self, doing: str) -> None:
        """Shows the text `doing`, at most ten times a second."""
        if self._shows and time.monotonic() - self._at >= EVERY:
            self._at = time.monotonic()
            self._show(doing)

    def finished(self, _cell: CellResult, /) -> None:
        self._done += 1

    def say(self, line: str) -> None:
        self._show("")
        self._say(line)

    def _show(self, text: str) -> None:
        if self._shows and (text or self._width):
            text = printable(text)[:WIDTH]
            end = "" if text else "\r"
            sys.stdout.write(f"\r{text:<{self._width}}{end}")
            sys.stdout.flush()
            self._width = len(text)

"""Signals that end a run: SIGINT (Ctrl-C), SIGTERM (`kill`, batch systems), SIGHUP (hang-up)."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable
from types import FrameType
from typing import Self

ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
"""Signals that end a run."""
AGAIN_SECONDS = 0.3
"""Signals within this time count as one, because a terminal and a launcher may both send one."""
Handler = Callable[[int, FrameType | None], object]


def ignore_ending() -> None:
    """Ignores the signals that end a run, because another process handles them."""
    for number in ENDING:
        signal.signal(number, signal.SIG_IGN)


class Signals:
    """A context in which a subclass's `_interrupt` replaces Python's handlers of ending signals."""

    def __init__(self) -> None:
        self._before: dict[int, Handler] = {}

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():  # which alone gets signals
            for number in ENDING:
                before = signal.getsignal(number)
                if callable(before):
                    self._before[number] = before
                    signal.signal(number, self._interrupt)
        return self

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        for number, before in self._before.items():
            signal.signal(number, before)

    def _interrupt(self, number: int, frame: FrameType | None) -> None:
        raise NotImplementedError

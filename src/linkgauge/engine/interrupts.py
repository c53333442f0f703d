"""Ctrl-C at a better moment."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

Handler = Callable[[int, FrameType | None], object]


class Interrupts:
    """While this is entered, Ctrl-C within `held` counts once that is over. Blocking the signal
    would not do: another thread of the process may take it."""

    def __init__(self) -> None:
        self._before: Handler | None = None
        self._holds = False
        self._came = False

    def __enter__(self) -> Interrupts:
        before = signal.getsignal(signal.SIGINT)
        if callable(before) and threading.current_thread() is threading.main_thread():
            self._before = before
            signal.signal(signal.SIGINT, self._interrupt)
        return self

    def __exit__(self, *error: object) -> None:
        if self._before is not None:
            signal.signal(signal.SIGINT, self._before)

    @contextmanager
    def held(self) -> Iterator[None]:
        """Something that is to be done whole."""
        self._holds = True
        try:
            yield
        finally:
            self._holds = False
        if self._came:
            self._interrupt(signal.SIGINT, None)

    def _interrupt(self, number: int, frame: FrameType | None) -> None:
        self._came = self._holds
        if not self._holds and self._before is not None:
            self._before(number, frame)

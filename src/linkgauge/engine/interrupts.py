"""Delays signals that end a run, and makes the garbage collector run less often."""

from __future__ import annotations

import gc
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

from linkgauge.machine.processes.signals import AGAIN_SECONDS, ENDING, Signals


def end_like_ctrl_c() -> Callable[[], int]:
    """Makes SIGTERM and SIGHUP act like Ctrl-C, unless they are ignored (`nohup`) or handled.
    Returns a function that returns the exit code: 128 plus the number of the signal that came."""
    came: list[int] = []

    def interrupt(number: int, frame: FrameType | None) -> None:
        came.append(number)
        raise KeyboardInterrupt

    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is signal.SIG_DFL:
            signal.signal(number, interrupt)
    return lambda: 128 + next(iter(came), signal.SIGINT)


@contextmanager
def undisturbed() -> Iterator[None]:
    """Ignores ending signals during this block, so that a second signal discards no result."""
    is_main = threading.current_thread() is threading.main_thread()  # which alone gets signals
    before = {number: signal.signal(number, signal.SIG_IGN) for number in ENDING if is_main}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


class Ending(Signals):
    """Ends a command in two steps. The first signal ends measuring; in a `concluding` block, it
    only calls `say` (in the signal handler). A second signal, `AGAIN_SECONDS` later or more, raises
    SystemExit with 128 plus the signal's number."""

    def __init__(self, say: Callable[[], object]) -> None:
        super().__init__()
        self._say = say
        self._concludes = False
        self._first: float | None = None
        self._put_off: int | None = None

    @contextmanager
    def concluding(self) -> Iterator[None]:
        self._concludes = True
        try:
            yield
        finally:
            self._concludes = False

    @contextmanager
    def keeping(self) -> Iterator[None]:
        """Delays the effect of the first signal until the end of this block."""
        with self.concluding():
            yield
        number, self._put_off = self._put_off, None
        if number is not None:
            self._before[number](number, None)

    def _interrupt(self, number: int, frame: FrameType | None) -> None:
        now = time.monotonic()
        if self._first is None:
            self._first = now
            if not self._concludes:
                self._before[number](number, frame)
            self._put_off = number
            self._say()
        elif now >= self._first + AGAIN_SECONDS:
            raise SystemExit(128 + number)


class Interrupts(Signals):
    """Delays a signal that arrives in a `held` block until the block ends or raises an error."""

    def __init__(self) -> None:
        super().__init__()
        self._holds = False
        self._came: int | None = None

    @contextmanager
    def held(self) -> Iterator[None]:
        self._holds = True
        try:
            yield
        finally:
            self._holds = False
            if self._came is not None:
                self._interrupt(self._came, None)

    def _interrupt(self, number: int, frame: FrameType | None) -> None:
        if self._holds:
            self._came = self._came or number
        else:
            self._came = None
            self._before[number](number, frame)


_NEW_OBJECTS = 50_000


@contextmanager
def collecting_seldom() -> Iterator[None]:
    """Makes the garbage collector run seldom during this block, because it would free nothing."""
    before = gc.get_threshold()
    if before[0] >= _NEW_OBJECTS:
        yield
        return
    gc.set_threshold(_NEW_OBJECTS, *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)

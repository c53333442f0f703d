"""Work that needs a thread of its own: calls return only when the work is done, or no event can
time the work.

Such work cannot wait behind a gate, because the call that opens the gate would never be made.
Instead, all threads start at a barrier. Each thread times itself by the host's monotonic clock, as
an application would."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, suppress
from typing import NamedTuple

from linkgauge import _native
from linkgauge.model.errors import BackendError

from .iterations import Queue
from .protocol import Copy, Gated, Pace, Timing

PATIENCE = 30.0
"""Seconds for which threads wait for each other before they start."""


def _nothing() -> None:
    pass


class Worked(NamedTuple):
    """The work of one thread. `run` carries out a number of loops and returns when all are done.
    `enter` prepares the calling thread before. `checksum` returns the xor of the words that a pure
    read saw, or None for other work."""

    run: Callable[[int], None]
    enter: Callable[[], None] = _nothing
    checksum: Callable[[], int | None] = _nothing
    close: Callable[[], None] = _nothing


def called(queue: Queue, copy: Copy, made: ExitStack) -> Worked:
    """Returns a copy as calls on a queue: the calls of all loops, with no Python in between, and a
    wait for the queue. `made` owns the resources of the calls."""
    moved, last = list(queue.copy(copy.destination, copy.source, copy.size)), list(queue.sync())
    calls, at_last = (
        [(queue.address_of(name), words) for name, words in named] for named in (moved, last)
    )

    def run(loops: int) -> None:
        _, status, failed = _native.time_iterations(calls, loops, at_last)
        if status:
            raise queue.error_of((*moved, *last)[failed][0], status)

    return Worked(run, queue.enter, close=made.close)


class ThreadedGroup(Gated):
    """Works that start together, each in its own thread. Threads live as long as the group, because
    libraries keep pools of threads for each calling thread."""

    def __init__(self, works: Sequence[Worked], pace: Pace = Pace()) -> None:  # noqa: B008
        self.works = tuple(works)
        self.pace = pace
        self._barrier = threading.Barrier(len(works) + 1)
        self._threads = ThreadPoolExecutor(max(1, len(works)))
        self._running: list[Future[list[float]]] = []

    def arm(self, loops: int, laps: int = 1) -> None:
        """Starts a thread for each work. The threads wait at the barrier."""
        super().arm(loops, laps)
        self._barrier.reset()
        try:
            for work in self.works:
                self._running.append(self._threads.submit(self._run, work, loops, laps))
        except RuntimeError as error:
            self.close()
            raise BackendError("start threads", str(error)) from error

    def open(self) -> None:
        super().open()
        # A thread that failed earlier broke the barrier: wait() raises its error.
        with suppress(threading.BrokenBarrierError):
            self._barrier.wait(PATIENCE)

    def wait(self) -> Timing:
        """Waits for all threads. Returns seconds by the host's clock, from the first call to the
        last byte. Raises the error of a thread that failed."""
        self.pass_gate()
        running, self._running = self._running, []
        failures = [error for one in running if (error := one.exception()) is not None]
        if failures:
            broken = threading.BrokenBarrierError
            raise next((one for one in failures if not isinstance(one, broken)), _late())
        spans = [one.result() for one in running]
        begin = min(times[0] for times in spans)
        return Timing(
            seconds=tuple(times[-1] - times[0] for times in spans),
            span=max(times[-1] for times in spans) - begin,
            checksums=tuple(work.checksum() for work in self.works),
            progress=tuple(tuple(at - begin for at in times) for times in spans),
        )

    def close(self) -> None:
        """Ends waiting threads and closes the works; idempotent."""
        super().close()
        self._barrier.abort()
        self._threads.shutdown()
        self._running.clear()
        for work in self.works:
            work.close()
        self.works = ()

    def _run(self, work: Worked, loops: int, laps: int) -> list[float]:
        """Carries out the work. Returns when the work began and when each lap ended, by the host's
        clock."""
        try:
            work.enter()
            self._barrier.wait(PATIENCE)
            times = [time.monotonic()]
            for _ in range(laps):
                work.run(loops)
                times.append(time.monotonic())
        except Exception:
            self._barrier.abort()  # nobody must wait for this thread
            raise
        return times


def _late() -> BackendError:
    return BackendError("gate", f"not opened within {PATIENCE:g} s")

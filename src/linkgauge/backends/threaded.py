"""Work whose calls return only when it is done, or that no event times: a thread for each.

Such work cannot wait behind a gate: the call that opens it would never be made. Instead, all
threads start at a barrier and time themselves by the host's monotonic clock, as an application sees
what they do.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, suppress
from typing import Protocol

from linkgauge import _native
from linkgauge.model.errors import BackendError

from .iterations import Queue
from .protocol import Copy, Gated, Pace, Timing

PATIENCE = 30.0
"""Seconds for which threads wait for each other before they start."""


class Worked(Protocol):
    """What one thread does."""

    def enter(self) -> None:
        """Prepares the calling thread; before anything else is called."""
        ...

    def run(self, loops: int) -> None:
        """Carries out so many loops, and returns when they are done."""
        ...

    def checksum(self) -> int | None:
        """The xor of what a pure read saw, None for other work."""
        ...

    def close(self) -> None: ...


class ThreadedGroup(Gated):
    """Works that start together, each in a thread of its own, which lives as long as the group:
    libraries keep pools of threads for each thread that calls them."""

    def __init__(self, works: Sequence[Worked], pace: Pace = Pace()) -> None:  # noqa: B008
        self.works = tuple(works)
        self.pace = pace
        self._barrier = threading.Barrier(len(works) + 1)
        self._threads = ThreadPoolExecutor(max(1, len(works)))
        self._running: list[Future[list[float]]] = []

    def arm(self, loops: int, laps: int = 1) -> None:
        """Starts a thread for each work, which waits at the barrier."""
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
        """Seconds by the host's clock, first call to last byte. Raises a thread's error."""
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
        """When the work began and ended its laps, by the host's clock."""
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


class Called:
    """A copy as calls on a queue: a thread makes those of all loops with no Python in between, and
    waits for the queue. `made` has what the calls need."""

    def __init__(self, queue: Queue, copy: Copy, made: ExitStack) -> None:
        self._queue, self._made = queue, made
        moved, last = list(queue.copy(copy.destination, copy.source, copy.size)), list(queue.sync())
        self._names = [name for name, _ in (*moved, *last)]
        self._calls, self._last = (
            [(queue.address_of(name), words) for name, words in named] for named in (moved, last)
        )

    def enter(self) -> None:
        self._queue.enter()

    def run(self, loops: int) -> None:
        _, status, failed = _native.time_iterations(self._calls, loops, self._last)
        if status:
            raise self._queue.error_of(self._names[failed], status)

    def checksum(self) -> None:
        return None

    def close(self) -> None:
        self._made.close()


def _late() -> BackendError:
    return BackendError("gate", f"not opened within {PATIENCE:g} s")

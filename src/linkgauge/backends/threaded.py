"""Runs work in threads: for calls that return only when they are done, and devices without timers.
Threads start at a barrier instead of a gate (start signal), and read the monotonic clock."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from typing import TYPE_CHECKING, NamedTuple

from linkgauge import _native
from linkgauge.model.errors import BackendError

from .iterations import Queue
from .protocol import Copy, Gated, SamplingPolicy, Timing

if TYPE_CHECKING:
    from concurrent.futures import Future

DEADLINE_SECONDS = 30.0
"""Seconds for which threads wait for each other at the start."""


def nothing() -> None:
    pass


class Worked(NamedTuple):
    """`run` carries out a number of loops; `enter` is called before it in the same thread.
    `checksum` returns the xor of the words read, or None if the work also writes."""

    run: Callable[[int], None]
    enter: Callable[[], None] = nothing
    checksum: Callable[[], int | None] = nothing
    close: Callable[[], object] = nothing


def called(queue: Queue, copy: Copy, made: ExitStack) -> Worked:
    """Returns work by a device's queue. The native core makes its calls; `made` frees them."""
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
    def __init__(self, works: Sequence[Worked]) -> None:
        from concurrent.futures import ThreadPoolExecutor

        self.works = tuple(works)
        self.policy = SamplingPolicy()
        self._barrier = threading.Barrier(len(works) + 1)
        self._threads = ThreadPoolExecutor(max(1, len(works)))
        self._running: list[Future[list[float]]] = []

    def arm(self, loops: int, batches: int = 1) -> None:
        super().arm(loops, batches)
        self._barrier.reset()
        try:
            for work in self.works:
                self._running.append(self._threads.submit(self._run, work, loops, batches))
        except RuntimeError as error:
            self.close()
            raise BackendError("start threads", str(error)) from error

    def open(self) -> None:
        super().open()
        # A thread that failed earlier broke the barrier: wait() raises its error.
        with suppress(threading.BrokenBarrierError):
            self._barrier.wait(DEADLINE_SECONDS)

    def wait(self) -> Timing:
        """Returns times by the host's clock. Raises the error of a thread that failed."""
        self.pass_gate()
        running, self._running = self._running, []
        failures = [error for one in running if (error := one.exception()) is not None]
        if failures:
            broken = threading.BrokenBarrierError
            late = BackendError("gate", f"not opened within {DEADLINE_SECONDS:g} s")
            raise next((one for one in failures if not isinstance(one, broken)), late)
        spans = [one.result() for one in running]
        begin = min(times[0] for times in spans)
        return Timing(
            seconds=tuple(times[-1] - times[0] for times in spans),
            span=max(times[-1] for times in spans) - begin,
            checksums=tuple(work.checksum() for work in self.works),
            progress=tuple(tuple(at - begin for at in times) for times in spans),
        )

    def close(self) -> None:
        super().close()
        self._barrier.abort()
        self._threads.shutdown()
        self._running.clear()
        for work in self.works:
            work.close()
        self.works = ()

    def _run(self, work: Worked, loops: int, batches: int) -> list[float]:
        try:
            work.enter()
            self._barrier.wait(DEADLINE_SECONDS)
            times = [time.monotonic()]
            for _ in range(batches):
                work.run(loops)
                times.append(time.monotonic())
        except Exception:
            self._barrier.abort()  # nobody must wait for this thread
            raise
        return times

"""How the host's clock times work: C calls that the native core repeats, or work in threads."""

from __future__ import annotations

import ctypes
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, suppress
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from linkgauge import _native
from linkgauge.model.errors import BackendError, Unsupported

from .protocol import Buffer, Copy, Gated, SamplingPolicy, Timing, single_iterations

if TYPE_CHECKING:
    from concurrent.futures import Future

Call = tuple[int, Sequence[int]]
"""The address of a C function, and its arguments. The function returns 0 on success."""
Named = tuple[str, Sequence[int]]
"""The name of a C function, and its arguments."""
_NANO = 1e-9
WARM_UPS = 8
"""The number of iterations before the timed ones. They wake hardware that was idle."""


def address_of(library: ctypes.CDLL, function: str) -> int:
    return ctypes.cast(getattr(library, function), ctypes.c_void_p).value or 0


class IteratedGroup(Gated):
    """Repeats C calls, timed by the host. A loop makes all `calls` once. A loop's time ÷ `steps` is
    a latency. `begin(iterations)` is called before the calls. `error_of(status, index)` returns the
    error of a failed call. `made` is closed with the group."""

    def __init__(
        self,
        calls: Sequence[Call],
        steps: int,
        error_of: Callable[[int, int], Exception],
        begin: Callable[[int], None] = lambda count: None,
        made: ExitStack | None = None,
    ) -> None:
        self._calls = calls
        self._error_of = error_of
        self._begin = begin
        self._made = made or ExitStack()
        self.policy = single_iterations(steps)

    def wait(self) -> Timing:
        """Returns the times. Raises a failed call's error, or Unsupported for a coarse clock."""
        loops, batches = self.pass_gate()
        count = WARM_UPS + loops * batches
        self._begin(count)
        ends, status, failed = _native.time_iterations(self._calls, count)
        if status:
            raise self._error_of(status, failed)
        times = tuple((end - ends[WARM_UPS]) * _NANO for end in ends[WARM_UPS::loops])
        if any(begin >= end for begin, end in pairwise(times)):
            raise Unsupported("a single iteration is too short for this machine's clock")
        return Timing.of_one(times)

    def close(self) -> None:
        super().close()
        self._made.close()


class Queue:
    """The queue of a device. Its operations are C calls, which the native core repeats without
    Python. A backend overrides the methods that it supports."""

    def address_of(self, name: str) -> int:
        raise NotImplementedError

    def error_of(self, name: str, status: int) -> Exception:
        raise NotImplementedError

    def enter(self) -> None:
        """Prepares the calling thread for this queue's C calls, as by making its device current."""

    def copy(self, destination: Buffer | None, source: Buffer | None, size: int) -> Iterator[Named]:
        raise NotImplementedError

    def sync(self) -> Iterator[Named]:
        raise NotImplementedError

    def launch(self) -> Iterator[Named]:
        """Returns the calls that launch an empty kernel and wait for its end."""
        raise NotImplementedError

    def event(self) -> Iterator[Named]:
        """Returns the calls that record an event on an empty queue and wait for the event."""
        raise NotImplementedError

    def graph_launch(self) -> Iterator[Named]:
        """Returns the calls that launch a graph with an empty kernel, and wait for its end."""
        raise NotImplementedError

    def doorbell(self) -> Iterator[Named]:
        """Returns the calls that launch a kernel and wait for a number that the kernel stores."""
        raise NotImplementedError


def iterated(queue: Queue, named: Sequence[Named], steps: int, made: ExitStack) -> IteratedGroup:
    calls = [(queue.address_of(name), words) for name, words in named]

    def error_of(status: int, failed: int) -> Exception:
        return queue.error_of(named[failed][0], status)

    return IteratedGroup(calls, steps, error_of, lambda count: queue.enter(), made)


# Work in threads: for calls that return only when they are done, and devices without timers.
# Threads start at a barrier instead of a gate (start signal), and read the monotonic clock.

DEADLINE_SECONDS = 30.0
"""Seconds for which threads wait for each other at the start."""


def nothing() -> None:
    pass


class Worked(NamedTuple):
    """Work for a thread. `run(loops)` does the work. `enter()` is called before, in the same
    thread. `checksum()` returns the xor of the words read, or None if the work also writes."""

    run: Callable[[int], None]
    enter: Callable[[], None] = nothing
    checksum: Callable[[], int | None] = nothing
    close: Callable[[], object] = nothing


def called(queue: Queue, copy: Copy, made: ExitStack) -> Worked:
    """Returns a copy by a device's queue, as work for a thread. Closing it closes `made`."""
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

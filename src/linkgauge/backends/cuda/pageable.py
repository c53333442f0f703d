"""Copies to or from pageable host memory, which the driver stages on the calling thread.

Such a call may return only once its bytes have arrived, so copies cannot be enqueued behind a gate:
the call that opens it would never be made. Instead, each copy has a thread; all start at a barrier
and time themselves by the host's monotonic clock, as an application sees these copies.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from contextlib import suppress

from linkgauge.backends.protocol import Pace, Timing
from linkgauge.model.errors import BackendError

from .gate import GATE_SECONDS
from .group import streams_of
from .work import StreamWork


class PageableGroup:
    """Copies that are each driven by a host thread, because a call may block until it is done."""

    most_loops = 1 << 30
    pace = Pace()

    def __init__(self, works: Sequence[StreamWork]) -> None:
        self._works = works
        self._streams = streams_of(works)
        self._barrier = threading.Barrier(len(works) + 1)
        self._spans: list[list[float]] = []
        """When each copy began and ended its laps, by the host's clock."""
        self._failures: list[BackendError] = []
        self._threads: list[threading.Thread] = []

    def arm(self, loops: int, laps: int = 1) -> None:
        """Starts a thread for each copy, which enters its context and waits at the barrier."""
        self._barrier.reset()
        self._failures.clear()
        self._spans = [[] for _ in self._works]
        self._threads = []
        for number in range(len(self._works)):
            thread = threading.Thread(target=self._run, args=(number, loops, laps), daemon=True)
            try:
                thread.start()
            except RuntimeError as error:
                raise BackendError("start threads", str(error)) from error
            self._threads.append(thread)

    def open(self) -> None:
        if not self._threads:
            raise BackendError("open", "the group is not armed")
        # A thread that failed earlier broke the barrier: wait() raises its error.
        with suppress(threading.BrokenBarrierError):
            self._barrier.wait(GATE_SECONDS)

    def wait(self) -> Timing:
        """Seconds by the host's clock, first call to last byte. Raises a thread's error."""
        if not self._threads:
            raise BackendError("wait", "the group is not armed")
        for thread in self._threads:
            thread.join()
        self._threads.clear()
        if self._failures:
            raise self._failures[0]
        begin = min(times[0] for times in self._spans)
        return Timing(
            seconds=tuple(times[-1] - times[0] for times in self._spans),
            span=max(times[-1] for times in self._spans) - begin,
            checksums=tuple(work.checksum() for work in self._works),
            progress=tuple(tuple(at - begin for at in times) for times in self._spans),
        )

    def close(self) -> None:
        """Ends waiting threads and frees the works; idempotent."""
        self._barrier.abort()
        for thread in self._threads:
            thread.join()
        for work in self._works:
            work.close()
        self._works = ()

    def _run(self, number: int, loops: int, laps: int) -> None:
        work, streams, times = self._works[number], self._streams[number], self._spans[number]
        try:
            work.device.enter()
            self._barrier.wait(GATE_SECONDS)
            times.append(time.monotonic())
            for _ in range(laps):
                work.enqueue(streams, loops)
                work.device.driver.call("cuStreamSynchronize", streams[0])
                times.append(time.monotonic())
        except threading.BrokenBarrierError:
            self._failures.append(BackendError("gate", f"not opened within {GATE_SECONDS:g} s"))
        except BackendError as error:
            self._failures.insert(0, error)
            self._barrier.abort()  # nobody must wait for this thread

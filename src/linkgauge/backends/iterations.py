"""Makes repeated C calls in the native core, and times each iteration separately."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from itertools import pairwise

from linkgauge import _native
from linkgauge.model.errors import Unsupported

from .protocol import MOST_LAPS, Buffer, Gated, Pace, Timing

Call = tuple[int, Sequence[int]]
"""The address of a C function that returns 0 on success, and the function's arguments."""
Named = tuple[str, Sequence[int]]
"""A C function by its name, and its arguments."""
_NANO = 1e-9
WARM_UPS = 8
"""The number of iterations before the timed iterations. The first iterations wake parts that were
idle behind the gate."""
_MOST = 512
"""The most iterations of a visit. All visits together have enough iterations for the 99.9th
percentile."""


def address_of(library: ctypes.CDLL, function: str) -> int:
    """Returns the address of a library's function."""
    return ctypes.cast(getattr(library, function), ctypes.c_void_p).value or 0


def single_iterations(steps: int) -> Pace:
    """Returns a pace whose samples are single iterations. Each iteration has `steps` latencies."""
    return Pace(seconds=0.0, loops=1, laps=MOST_LAPS, most=_MOST, steps=steps)


class IteratedGroup(Gated):
    """A group that makes `calls` in their order, timed by the host. A loop is one iteration, which
    has `steps` latencies. `begin` is called first, with the number of iterations that follow.
    `error_of` makes an exception from the result of a call and the call's place. `made` owns the
    resources of the calls; close() closes `made`."""

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
        self.pace = single_iterations(steps)

    def wait(self) -> Timing:
        """Makes the calls. Raises the exception from `error_of` for the first failed call, and
        Unsupported if the clock is too coarse to time single iterations."""
        loops, laps = self.pass_gate()
        count = WARM_UPS + loops * laps
        self._begin(count)
        ends, status, failed = _native.time_iterations(self._calls, count)
        if status:
            raise self._error_of(status, failed)
        times = tuple((end - ends[WARM_UPS]) * _NANO for end in ends[WARM_UPS::loops])
        if any(begin >= end for begin, end in pairwise(times)):
            raise Unsupported("a single iteration is too short for this machine's clock")
        return Timing((times[-1],), times[-1], (None,), (times,))

    def close(self) -> None:
        super().close()
        self._made.close()


class Queue:
    """Base of the queues of a device. Each method returns C functions, which the native core calls
    repeatedly with no Python in between. A backend overrides the methods for the operations that it
    carries out."""

    def address_of(self, name: str) -> int:
        """Returns the address of a function that one of the methods below names."""
        raise NotImplementedError

    def error_of(self, name: str, status: int) -> Exception:
        """Returns the exception for a function's result other than 0."""
        raise NotImplementedError

    def enter(self) -> None:
        """Prepares the calling thread for the calls."""

    def copy(self, destination: Buffer | None, source: Buffer | None, size: int) -> Iterator[Named]:
        """Returns the calls that enqueue a copy."""
        raise NotImplementedError

    def sync(self) -> Iterator[Named]:
        """Returns the calls that wait until the queue is empty."""
        raise NotImplementedError

    def launch(self) -> Iterator[Named]:
        """Returns the calls that launch an empty kernel and wait for its end."""
        raise NotImplementedError

    def event(self) -> Iterator[Named]:
        """Returns the calls that record an event on an empty queue and wait for the event."""
        raise NotImplementedError

    def graph_launch(self) -> Iterator[Named]:
        """Returns the calls that launch a graph with an empty kernel and wait for its end."""
        raise NotImplementedError

    def doorbell(self) -> Iterator[Named]:
        """Returns the calls that launch a kernel which stores a number in the host's memory, and
        wait until the host sees the number."""
        raise NotImplementedError


def iterated(queue: Queue, named: Sequence[Named], steps: int, made: ExitStack) -> IteratedGroup:
    """Returns a group of calls on a queue. An iteration has `steps` latencies."""
    calls = [(queue.address_of(name), words) for name, words in named]

    def error_of(status: int, failed: int) -> Exception:
        return queue.error_of(named[failed][0], status)

    return IteratedGroup(calls, steps, error_of, lambda count: queue.enter(), made)

"""Repeats C calls in the native core, and times each iteration."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from itertools import pairwise

from linkgauge import _native
from linkgauge.model.errors import Unsupported

from .protocol import MOST_BATCHES, Buffer, Gated, SamplingPolicy, Timing

Call = tuple[int, Sequence[int]]
"""The address of a C function, and its arguments. The function returns 0 on success."""
Named = tuple[str, Sequence[int]]
"""The name of a C function, and its arguments."""
_NANO = 1e-9
WARM_UPS = 8
"""The number of iterations before the timed ones. They wake hardware that was idle."""
_MOST = 512
"""The largest number of iterations in a round of samples. All rounds together have enough for the
99.9th percentile."""


def address_of(library: ctypes.CDLL, function: str) -> int:
    return ctypes.cast(getattr(library, function), ctypes.c_void_p).value or 0


def single_iterations(steps: int) -> SamplingPolicy:
    """Returns a policy whose samples are single iterations, each of `steps` latencies."""
    return SamplingPolicy(seconds=0.0, loops=1, batches=MOST_BATCHES, most=_MOST, steps=steps)


class IteratedGroup(Gated):
    """Repeats C calls, timed by the host. A loop makes all `calls` once, and has `steps` latencies.
    `begin(iterations)` is called first. `error_of(status, index)` returns the error of a failed
    call. `made` is closed with the group."""

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
        """Raises `error_of` a failed call, or Unsupported if the clock is too coarse for one."""
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
    """A device's queue. Each method returns the C calls of one operation, which the native core
    repeats without Python. A backend overrides the methods that it supports."""

    def address_of(self, name: str) -> int:
        raise NotImplementedError

    def error_of(self, name: str, status: int) -> Exception:
        raise NotImplementedError

    def enter(self) -> None:
        """Prepares this thread for the calls."""

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

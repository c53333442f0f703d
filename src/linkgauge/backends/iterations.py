"""C calls made over and over by the native core, each iteration timed by itself."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from itertools import pairwise

from linkgauge import _native
from linkgauge.model.errors import Unsupported

from .protocol import MOST_LAPS, Gated, Pace, Timing

Call = tuple[int, Sequence[int]]
"""The address of a C function that returns 0 if all is well, and its arguments."""
_NANO = 1e-9
WARM_UPS = 8
"""Iterations before those that are timed: the first wake what rested since the gate."""
_MOST = 512
"""Iterations of a visit: with those of the next visits, enough for the 99.9th percentile."""


def address_of(library: ctypes.CDLL, function: str) -> int:
    """The address of a library's function."""
    return ctypes.cast(getattr(library, function), ctypes.c_void_p).value or 0


def single_iterations(steps: int) -> Pace:
    """A pace whose samples are single iterations, of `steps` latencies each."""
    return Pace(seconds=0.0, loops=1, laps=MOST_LAPS, most=_MOST, steps=steps)


class IteratedGroup(Gated):
    """`calls` in their order, by host time: a loop is one iteration, which has `steps` latencies.
    `begin` is called before, with the number of iterations to come, and `error_of` turns what a
    call returned, and its place among the calls, into an exception. `made` has what outlives the
    calls, and is closed by close()."""

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
        """Raises what `error_of` makes of the first call that fails, and Unsupported where the
        clock does not tell single iterations."""
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

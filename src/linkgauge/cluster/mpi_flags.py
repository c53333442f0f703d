"""Flags that bounce between the memories of two hosts: each side puts a value into the other's
window (MPI_Put, MPI_Win_flush) and polls its own memory. The native loop makes the calls."""

from __future__ import annotations

import ctypes
from itertools import pairwise
from typing import Any

from linkgauge import _native
from linkgauge.backends.iterations import WARM_UPS, Call, address_of, single_iterations
from linkgauge.model.errors import BackendError, TookTooLong, Unsupported

from .messages import Ended
from .world import library

LIMIT = 5.0
"""Seconds after which a side gives up that hears nothing."""
_CALL = "flag ping-pong"
_SILENT = "the other side is silent, or this MPI moves bytes only while it is called,"
_WORD = 8
_NANO = 1e-9


class FlagSide:
    """One side: `mine` is the address of its flag, `window` that of rank `other`, which has its
    flag at the beginning. The side that `begins` times each way there and back."""

    def __init__(self, mpi: Any, mine: int, window: Any, other: int, *, begins: bool) -> None:
        self._begins = begins
        self._mine = ctypes.c_uint64.from_address(mine)
        self._value = ctypes.c_uint64(0)
        self.pace = single_iterations(2)
        functions = library(mpi)
        handle = mpi._handleof  # noqa: SLF001  # mpi4py documents it
        byte, win = handle(mpi.BYTE), handle(window)
        # What is put: the value to come, or what has just been heard.
        origin = ctypes.addressof(self._value) if begins else mine
        put: Call = (
            address_of(functions, "MPI_Put"), (origin, _WORD, byte, other, 0, _WORD, byte, win)
        )  # fmt: skip
        flush: Call = (address_of(functions, "MPI_Win_flush"), (other, win))
        limit = int(LIMIT / _NANO)
        hear: Call = (_native.AWAIT_WORD, (mine, ctypes.addressof(self._value), limit))
        self._calls = (put, flush, hear) if begins else (hear, put, flush)
        self._loops = self._laps = 0

    def arm(self, loops: int, laps: int) -> None:
        """Both sides begin at 0, which no value is: the first is 1."""
        self._loops, self._laps = loops, laps
        self._mine.value = 0
        self._value.value = 1

    def bounce(self, opened: float) -> Ended:
        """Raises TookTooLong if the other side is silent."""
        count = WARM_UPS + self._loops * self._laps
        ends, status, failed = _native.time_iterations(self._calls, count)
        if status:
            if self._calls[failed][0] == _native.AWAIT_WORD:
                raise TookTooLong(_CALL, f"{_SILENT} for {LIMIT:g} s")
            raise BackendError(_CALL, f"MPI returned {status}")
        if not self._begins:
            return Ended(opened, {})
        times = tuple((end - ends[WARM_UPS]) * _NANO for end in ends[WARM_UPS :: self._loops])
        if any(begin >= end for begin, end in pairwise(times)):
            raise Unsupported("a single iteration is shorter than this machine's clock tells")
        return Ended(opened, {0: times[-1]}, {0: None}, {0: times})

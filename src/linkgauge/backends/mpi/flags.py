"""How flags bounce between hosts. A rank polls its flag, and writes the other flag by MPI_Put."""

from __future__ import annotations

import ctypes
from typing import Any

from linkgauge import _native
from linkgauge.backends.iterations import Call, IteratedGroup, address_of
from linkgauge.backends.protocol import Timing
from linkgauge.model.errors import BackendError, TookTooLong

from .world import library

LIMIT = 5.0
"""Seconds after which a side gives up if the other side does not answer."""
_CALL = "flag ping-pong"
_SILENT = "the other side did not answer, or this MPI moves bytes only while it is called,"
_WORD = 8
_NANO = 1e-9


class FlagSide(IteratedGroup):
    """One rank of a flag ping-pong. `mine` is the address of this rank's flag. `theirs` is a
    pair: the other rank's number, and the offset of its flag in the window. If `begins` is true,
    this rank times the round trips."""

    def __init__(
        self, mpi: Any, mine: int, window: Any, theirs: tuple[int, int], *, begins: bool
    ) -> None:
        other, offset = theirs
        self._begins = begins
        self._mine = ctypes.c_uint64.from_address(mine)
        self._value = ctypes.c_uint64(0)
        functions = library(mpi)
        handle = mpi._handleof  # noqa: SLF001  # mpi4py documents it
        byte, win = handle(mpi.BYTE), handle(window)
        # What is put: the value to come, or what has just been heard.
        origin = ctypes.addressof(self._value) if begins else mine
        put: Call = (
            address_of(functions, "MPI_Put"), (origin, _WORD, byte, other, offset, _WORD, byte, win)
        )  # fmt: skip
        flush: Call = (address_of(functions, "MPI_Win_flush"), (other, win))
        limit = int(LIMIT / _NANO)
        hear: Call = (_native.AWAIT_WORD, (mine, ctypes.addressof(self._value), limit))
        calls = (put, flush, hear) if begins else (hear, put, flush)

        def error_of(status: int, failed: int) -> BackendError:
            if calls[failed] is hear:
                return TookTooLong(_CALL, f"{_SILENT} for {LIMIT:g} s")
            return BackendError(_CALL, f"MPI returned {status}")

        super().__init__(calls, 2, error_of)

    def arm(self, loops: int, batches: int = 1) -> None:
        super().arm(loops, batches)
        self._mine.value = 0
        self._value.value = 1

    def wait(self) -> Timing:
        """Returns the round trips' times, or no times if the other rank times them. Raises
        TookTooLong if the other rank does not answer."""
        timing = super().wait()
        return timing if self._begins else Timing((), 0.0)

"""What a worker is at, in memory that it shares with the controller.

A cell has six phases, and a message for each would cost more than measuring a simulated cell: the
worker writes them down, and the controller looks only where the worker does not answer.
"""

from __future__ import annotations

import mmap
import os
import struct
import time
from typing import get_args

import msgspec

from linkgauge.backends.base import Phase

PHASES: tuple[Phase, ...] = get_args(Phase)
_LAYOUT = struct.Struct("=ddddd")


class Standing(msgspec.Struct, frozen=True):
    """A phase, and when the cell began and the last sign of life came: a phase began, or a sample
    ended (seconds of the monotonic clock, which all processes share). `warm_up` is how long that
    took, `longest` the longest sample so far; 0 before their end."""

    phase: Phase
    begun: float
    since: float
    warm_up: float
    longest: float = 0.0


class Board:
    """The shared memory behind a file descriptor, which the caller keeps open no longer than it
    wants to hand it on."""

    def __init__(self, descriptor: int) -> None:
        self._memory = mmap.mmap(descriptor, _LAYOUT.size)
        self._begun = self._since = self._warm_up = self._longest = 0.0
        self._phase: Phase = "plan"

    def enter(self, phase: Phase) -> None:
        """A phase begins; with the first of them, a cell. Each sample begins measuring anew."""
        now = time.monotonic()
        if phase == "allocate":
            self._begun, self._warm_up, self._longest = now, 0.0, 0.0
        elif self._phase == "warm up":
            self._warm_up = now - self._since
        elif self._phase == phase == "measure":
            self._longest = max(self._longest, now - self._since)
        self._phase, self._since = phase, now
        number = float(PHASES.index(phase))
        _LAYOUT.pack_into(self._memory, 0, number, self._begun, now, self._warm_up, self._longest)

    def clear(self) -> None:
        """A cell is asked for, and has not begun."""
        _LAYOUT.pack_into(self._memory, 0, 0.0, 0.0, 0.0, 0.0, 0.0)

    def read(self) -> Standing:
        number, *seconds = _LAYOUT.unpack_from(self._memory)
        return Standing(PHASES[int(number)], *seconds)

    def close(self) -> None:
        self._memory.close()


def new_board() -> tuple[Board, int]:
    """A board, and the descriptor to hand to the worker. It is of no file: nothing is left of it
    when both processes have ended."""
    descriptor = os.memfd_create("linkgauge")
    os.ftruncate(descriptor, _LAYOUT.size)
    return Board(descriptor), descriptor

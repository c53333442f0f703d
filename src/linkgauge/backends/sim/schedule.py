"""When faults strike: a pure function of the cell's ordinal in the plan, of the sample's number in
the cell and of what is touched. A fresh worker, or a resumed run, meets the same schedule."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Collection, Iterable, Iterator, Sequence, Set
from typing import NoReturn

from linkgauge.backends.base import Phase
from linkgauge.model.errors import AllocationError, DeviceLost, InputError

from .faults import PHASES, Crash, Drift, Fault, Flip, Jitter, Lost, NoMem, Slow, Stall, Strike

ALL = "*"
_SHOWN = 40
"""Targets listed in an error; a large machine has thousands of links."""


def check_targets(faults: Iterable[Fault], names: Collection[str]) -> None:
    """Raises InputError for a fault of something that the machine does not have."""
    for fault in faults:
        if fault.target != ALL and fault.target not in names:
            shown = [*list(names)[:_SHOWN], *(["…"] if len(names) > _SHOWN else [])]
            raise InputError(
                f"fault '{fault}': there is no {fault.target}; there are {', '.join(shown)} and *"
            )


class Schedule:
    """Answers what strikes a cell. `touched` are the names that a transfer (or all of a cell's)
    touches: its memories, its engine's owner, the links that it crosses."""

    def __init__(self, faults: Sequence[Fault]) -> None:
        self._faults = tuple(faults)

    def __bool__(self) -> bool:
        return bool(self._faults)

    def _on(self, cell: int, touched: Set[str]) -> Iterator[Fault]:
        """The faults of this cell whose target is touched."""
        for fault in self._faults:
            if cell in fault.cells and (fault.target == ALL or fault.target in touched):
                yield fault

    def strike(self, cell: int, phase: Phase, touched: Set[str]) -> Strike | None:
        """What ends the cell as this phase of it begins."""
        for fault in self._faults:
            if (
                isinstance(fault, Strike)
                and _strikes_in(fault, cell, phase)
                and (fault.target == ALL or fault.target in touched)
            ):
                return fault
        return None

    def rate(self, cell: int, names: Set[str]) -> float:
        """The fraction of its rate that something of these names (a link: its own and those of
        its ends) has in this cell."""
        rate = 1.0
        for fault in self._on(cell, names):
            if isinstance(fault, Slow):
                rate *= fault.rate
            elif isinstance(fault, Drift):
                rate *= _drifted(fault, cell - fault.cells.first)
        return rate

    def sigma(self, cell: int, touched: Set[str]) -> float:
        """Standard deviation, relative, on top of the machine's own noise."""
        return math.hypot(*(f.sigma for f in self._on(cell, touched) if isinstance(f, Jitter)))

    def stall(self, cell: int, sample: int, touched: Set[str]) -> float:
        """Seconds that this sample of the cell, counted from 0, lasts longer."""
        return sum(
            fault.seconds
            for fault in self._on(cell, touched)
            if isinstance(fault, Stall) and (sample + 1) % fault.every == 0
        )

    def flips(self, cell: int, touched: Set[str]) -> list[tuple[int, int]]:
        """Bits of what a transfer wrote that are wrong afterwards: byte offset, bit."""
        return [(f.offset, f.bit) for f in self._on(cell, touched) if isinstance(f, Flip)]


_MOST_DRIFT = math.log(1e6)
"""A rate that drifts levels off at a millionth or a million times of what it was: never 0."""


def _drifted(fault: Drift, cells: int) -> float:
    exponent = cells * math.log1p(fault.per_cell)
    return math.exp(max(-_MOST_DRIFT, min(exponent, _MOST_DRIFT)))


def _strikes_in(fault: Strike, cell: int, phase: Phase) -> bool:
    if isinstance(fault, Lost):
        first = PHASES.index(fault.phase if cell == fault.cells.first else "allocate")
        return cell >= fault.cells.first and PHASES.index(phase) >= first
    return phase == fault.phase and cell in fault.cells


_CALLS: dict[Phase, str] = {
    "plan": "plan",
    "allocate": "allocate",
    "warm up": "copy",
    "fill": "fill",
    "measure": "copy",
    "verify": "compare",
}
"""The call that fails in each phase, as a real API's would."""


def act(fault: Strike, phase: Phase) -> NoReturn:
    """Does what the fault does: dies, hangs, or raises as a real API's call would."""
    because = f"(SIMULATED: {fault})"
    if isinstance(fault, Lost):
        raise DeviceLost(_CALLS[phase], f"device lost {because}")
    if isinstance(fault, NoMem):
        raise AllocationError(_CALLS[phase], f"out of memory {because}")
    if isinstance(fault, Crash):
        os.kill(os.getpid(), fault.signal)
    while True:  # a hang; or until the signal arrives
        time.sleep(3600)

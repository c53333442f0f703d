"""The schedule of faults. The faults in force depend only on the cell's ordinal in the plan, the
sample's number in the cell, and the touched names. So a new worker or a resumed run has the same
schedule."""

from __future__ import annotations

import difflib
import math
import os
import time
from collections.abc import Collection, Iterable, Iterator, Sequence, Set
from typing import NoReturn, TypeVar

from linkgauge.model.errors import PHASES, AllocationError, DeviceLost, InputError, Phase

from .faults import Crash, Drift, Fault, Flip, Jitter, Lost, NoMem, Slow, Stall, Strike

_Kind = TypeVar("_Kind", bound=Fault)
_SHOWN = 6
"""The most targets listed in an error, nearest in spelling first. A large machine has thousands."""


def check_targets(faults: Iterable[Fault], names: Collection[str]) -> None:
    """Raises InputError for a fault whose target the machine does not have."""
    for fault in faults:
        if not fault.aims_at(names):
            near = difflib.get_close_matches(fault.target, names, n=_SHOWN, cutoff=0.0)
            more = f", {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
            raise InputError(
                f"fault '{fault}': no {fault.target}: targets are {', '.join(near)}{more} and *"
            )


class Schedule:
    """Finds the faults that affect a cell. `touched` has the names that a transfer (or all
    transfers of a cell) touches: memories, the engine's owner, and links on the route."""

    def __init__(self, faults: Sequence[Fault]) -> None:
        self._faults = tuple(faults)

    def __bool__(self) -> bool:
        return bool(self._faults)

    def _on(self, kind: type[_Kind], cell: int, touched: Set[str]) -> Iterator[_Kind]:
        """Yields the faults of this kind in this cell whose target is touched."""
        for fault in self._faults:
            if isinstance(fault, kind) and cell in fault.cells and fault.aims_at(touched):
                yield fault

    def strike(self, cell: int, phase: Phase, touched: Set[str]) -> Strike | None:
        """Returns the fault that ends the cell at the start of this phase, or None if there is
        none."""
        strikes = (fault for fault in self._faults if isinstance(fault, Strike))
        ending = (f for f in strikes if _strikes_in(f, cell, phase) and f.aims_at(touched))
        return next(ending, None)

    def rate(self, cell: int, names: Set[str]) -> float:
        """Returns the fraction of the full rate that a part keeps in this cell. `names` are the
        part's names (for a link: the link's names and those of its ends)."""
        return math.prod((_left(f, cell) for f in self._on(Fault, cell, names)), start=1.0)

    def least_rate(self, cells: Iterable[int], names: Set[str]) -> float:
        """Returns the lowest fraction of the full rate that a part keeps in any of the cells."""
        aimed = Schedule([fault for fault in self._faults if fault.aims_at(names)])
        return min(aimed.rate(cell, names) for cell in cells) if aimed else 1.0

    def sigma(self, cell: int, touched: Set[str]) -> float:
        """Returns the relative standard deviation that faults add to the machine's own noise."""
        return math.hypot(*(fault.sigma for fault in self._on(Jitter, cell, touched)))

    def stall(self, cell: int, sample: int, touched: Set[str]) -> float:
        """Returns the extra seconds of this sample of the cell. Samples count from 0."""
        stalls = self._on(Stall, cell, touched)
        return sum(stall.seconds for stall in stalls if (sample + 1) % stall.every == 0)

    def flips(self, cell: int, touched: Set[str]) -> list[tuple[int, int]]:
        """Returns the bits that flip in a transfer's result, each as byte offset and bit number."""
        return [(flip.offset, flip.bit) for flip in self._on(Flip, cell, touched)]


_MOST_DRIFT = math.log(1e6)
"""The limit of drift: a rate stays between a millionth and a million times its healthy value."""


def _left(fault: Fault, cell: int) -> float:
    """Returns the fraction of a rate that a fault leaves in this cell."""
    if isinstance(fault, Drift):
        exponent = (cell - fault.cells.first) * math.log1p(fault.per_cell)
        return math.exp(max(-_MOST_DRIFT, min(exponent, _MOST_DRIFT)))
    return fault.rate if isinstance(fault, Slow) else 1.0


def _strikes_in(fault: Strike, cell: int, phase: Phase) -> bool:
    if isinstance(fault, Lost):
        first = PHASES.index(fault.phase if cell == fault.cells.first else "allocate")
        return cell >= fault.cells.first and PHASES.index(phase) >= first
    return phase == fault.phase and cell in fault.cells


_CALLS: dict[Phase, str] = {"warm up": "copy", "measure": "copy", "verify": "compare"}
"""The calls of a real API that would fail in a phase, if the phase has another name."""


def act(fault: Strike, phase: Phase) -> NoReturn:
    """Carries out the fault: ends the process, hangs, or raises an error as a real API call
    would."""
    call, because = _CALLS.get(phase, phase), f"(SIMULATED: {fault})"
    if isinstance(fault, Lost):
        raise DeviceLost(call, f"device lost {because}")
    if isinstance(fault, NoMem):
        raise AllocationError(call, f"out of memory {because}")
    if isinstance(fault, Crash):
        os.kill(os.getpid(), fault.signal)
    while True:  # a hang; or until the signal arrives
        time.sleep(3600)

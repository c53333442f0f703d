"""The schedule of faults. It depends only on the number of the cell in the plan, the number of the
sample, and the parts that are used. It is therefore the same in every process, also if a run is
resumed."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Collection, Iterable, Iterator, Sequence, Set
from typing import NoReturn, TypeVar

from linkgauge.model.errors import PHASES, AllocationError, DeviceLost, InputError, Phase

from .faults import Crash, Drift, Fault, Flip, Jitter, Lost, NoMem, Slow, Stall, Strike

_Kind = TypeVar("_Kind", bound=Fault)
_SHOWN = 6
"""The largest number of targets that an error message lists."""


def check_targets(faults: Iterable[tuple[str, Fault]], names: Collection[str]) -> None:
    """Raises InputError if the machine does not have the target of a fault. Each fault comes with
    its text as it was typed."""
    for typed, fault in faults:
        if not fault.aims_at(names):
            import difflib

            near = difflib.get_close_matches(fault.target, names, n=_SHOWN, cutoff=0.0)
            more = f", {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
            raise InputError(
                f"fault '{typed}': no {fault.target}: targets are {', '.join(near)}{more} and *"
            )


class Schedule:
    """Finds the faults that affect a cell. `touched` are the names of the parts that a transfer or
    a cell uses."""

    def __init__(self, faults: Sequence[Fault]) -> None:
        self._faults = tuple(faults)
        self.strikes = tuple(fault for fault in self._faults if isinstance(fault, Strike))

    def __bool__(self) -> bool:
        return bool(self._faults)

    def _on(self, kind: type[_Kind], cell: int, touched: Set[str]) -> Iterator[_Kind]:
        """Yields the faults of one kind that affect this cell."""
        for fault in self._faults:
            if isinstance(fault, kind) and cell in fault.cells and fault.aims_at(touched):
                yield fault

    def strike(self, cell: int, phase: Phase, touched: Set[str]) -> Strike | None:
        """Returns the fault that ends the cell at the start of this phase, or None."""
        ending = (f for f in self.strikes if _strikes_in(f, cell, phase) and f.aims_at(touched))
        return next(ending, None)

    def rate(self, cell: int, names: Set[str]) -> float:
        """Returns the fraction of the full rate that a part has in this cell. `names` are the names
        of the part."""
        return least_rate(self.aimed(names), (cell,))

    def aimed(self, names: Set[str]) -> tuple[Fault, ...]:
        """Returns the faults of a part. `names` are the names of the part."""
        return tuple(fault for fault in self._faults if fault.aims_at(names))

    def sigma(self, cell: int, touched: Set[str]) -> float:
        """Returns the relative standard deviation that faults add."""
        return math.hypot(*(fault.sigma for fault in self._on(Jitter, cell, touched)))

    def stall(self, cell: int, sample: int, touched: Set[str]) -> float:
        """Returns the seconds that faults add to a sample. Samples are numbered from 0."""
        stalls = self._on(Stall, cell, touched)
        return sum(stall.seconds for stall in stalls if (sample + 1) % stall.every == 0)

    def flips(self, cell: int, touched: Set[str]) -> list[tuple[int, int]]:
        """Returns the bits that flip in the result of a transfer, each as the offset of its byte
        and its number."""
        return [(flip.offset, flip.bit) for flip in self._on(Flip, cell, touched)]


def least_rate(faults: Sequence[Fault], cells: Iterable[int]) -> float:
    """Returns the lowest fraction of the full rate that a part with these faults has in any of the
    cells."""
    rates = (
        math.prod((_left(f, cell) for f in faults if cell in f.cells), start=1.0) for cell in cells
    )
    return min(rates) if faults else 1.0


_MOST_DRIFT = math.log(1e6)
"""The limit of drift: a rate stays between a millionth and a million times its healthy value."""


def _left(fault: Fault, cell: int) -> float:
    """Returns the fraction of the full rate that a fault leaves in this cell."""
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
"""The name of the call that fails in a phase, if it is not the phase's own name."""


def act(fault: Strike, phase: Phase) -> NoReturn:
    """Carries out a fault: ends the process, hangs, or raises an error like a real call."""
    call, because = _CALLS.get(phase, phase), f"(SIMULATED: {fault})"
    if isinstance(fault, Lost):
        raise DeviceLost(call, f"device lost {because}")
    if isinstance(fault, NoMem):
        raise AllocationError(call, f"out of memory {because}")
    if isinstance(fault, Crash):
        os.kill(os.getpid(), fault.signal)
    while True:  # a hang; or until the signal arrives
        time.sleep(3600)

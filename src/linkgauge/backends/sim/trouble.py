"""How scheduled faults affect cells: in the same way in every process and resumed run."""

from __future__ import annotations

import math
import os
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from operator import attrgetter
from typing import NoReturn, TypeVar

import msgspec

from linkgauge.backends.protocol import Copy
from linkgauge.model.errors import AllocationError, DeviceLost, Phase
from linkgauge.model.hardware.map import Resource
from linkgauge.model.transfer import Transfer

from .faults import Crash, Fault, Flip, Jitter, Lost, NoMem, Stall, Strike, least_rate, rate_left
from .memory import SimBuffer
from .resources import Demand, Resources

_Kind = TypeVar("_Kind", bound=Fault)
Touched = Callable[[Transfer], frozenset[str]]
"""A function that returns the names of the parts that a transfer uses."""


class Trouble:
    def __init__(self, faults: Sequence[Fault], resources: Resources, touched: Touched) -> None:
        self._faults = faults
        self._strikes = [fault for fault in faults if isinstance(fault, Strike)]
        self._resources = resources
        self._touched = touched
        self._cells: dict[int, Sequence[Transfer]] = {0: ()}
        self._phase: Phase = "plan"
        self._copies: list[tuple[int, Copy, frozenset[str]]] = []

    def enter(self, cells: Mapping[int, Sequence[Transfer]], phase: Phase, passed: int) -> None:
        """Starts a phase of `cells`, transfers by number in this run. To faults, the `passed` cells
        of earlier runs come first. A fault may raise an error, hang or end the process, or, in
        phase `verify`, flip bits."""
        self._cells, self._phase = {}, phase
        for number, transfers in cells.items():
            self._cells[passed + number] = transfers
        if phase == "verify":
            self.flip()
        if not self._strikes:
            return
        # A collective crosses links that its transfers, each within a device, do not name.
        crossed: defaultdict[int, list[frozenset[str]]] = defaultdict(list)
        for of, _, own in self._copies:
            crossed[of].append(own)
        for number, transfers in self._cells.items():
            named = map(self._touched, transfers)
            touched = frozenset[str]().union(*named, *crossed[number])
            for strike in self._strikes:
                if strike.is_due(number, phase) and strike.aims_at(touched):
                    _act(strike, phase)

    def begin(self, copies: Sequence[Copy], demands: Sequence[Demand]) -> list[Demand]:
        """Registers copies. Returns `demands`, with lower rates where faults slow host threads."""
        numbers: list[int] = []
        for number, transfers in self._cells.items():
            numbers += [number] * len(transfers)
        if len(numbers) != len(copies):  # not driven cell by cell
            numbers = [min(self._cells)] * len(copies)
        self._copies = []
        slowed: list[Demand] = []
        for number, copy, demand in zip(numbers, copies, demands, strict=True):
            self._copies.append((number, copy, demand.touched))
            # Host threads are no shared resource, so a fault lowers the transfer's own rate.
            rate = rate_left(self.aimed({str(copy.transfer.engine.owner)}), number)
            flow = msgspec.structs.replace(demand.flow, cap=demand.flow.cap * rate)
            slowed.append(demand if rate == 1 else msgspec.structs.replace(demand, flow=flow))
        return slowed

    def capacity(self, demands: Sequence[Demand]) -> Mapping[Resource, float]:
        """Returns each resource's bytes/s: the lowest that faults leave in a current cell."""
        if not self._faults:
            return self._resources.capacity
        least: dict[tuple[Fault, ...], float] = {}  # many parts have the same faults
        found: dict[Resource, float] = {}
        for demand in demands:
            for resource, _ in demand.flow.usage:
                if resource in found:
                    continue
                aimed = self.aimed(self._resources.names[resource])
                if aimed not in least:
                    least[aimed] = least_rate(aimed, self._cells)
                found[resource] = self._resources.capacity[resource] * least[aimed]
        return found

    def aimed(self, names: Set[str]) -> tuple[Fault, ...]:
        return tuple(fault for fault in self._faults if fault.aims_at(names))

    def _on(self, kind: type[_Kind], place: int) -> Iterator[_Kind]:
        cell, _, touched = self._copies[place]
        for fault in self._faults:
            if isinstance(fault, kind) and cell in fault.cells and fault.aims_at(touched):
                yield fault

    def sigma(self, place: int) -> float:
        """Returns the relative standard deviation that faults add to registered copy `place`."""
        return math.hypot(*map(attrgetter("sigma"), self._on(Jitter, place)))

    def stall(self, place: int, sample: int) -> float:
        """Returns how many seconds faults delay sample `sample` of copy `place` (both from 0)."""
        stalls = self._on(Stall, place) if self._phase == "measure" else ()
        return sum(stall.seconds for stall in stalls if (sample + 1) % stall.every == 0)

    def flip(self) -> None:
        for place, (_, copy, _) in enumerate(self._copies):
            buffer = copy.destination or copy.source
            for fault in self._on(Flip, place):
                if isinstance(buffer, SimBuffer) and fault.offset < min(copy.size, buffer.size):
                    buffer.flip(fault.offset, fault.bit)


_CALLS: dict[Phase, str] = {"warm up": "copy", "measure": "copy", "verify": "compare"}
"""The name of the call that fails in a phase, if it is not the phase's own name."""


def _act(fault: Strike, phase: Phase) -> NoReturn:
    call, because = _CALLS.get(phase, phase), f"(SIMULATED: {fault})"
    if isinstance(fault, Lost):
        raise DeviceLost(call, f"device lost {because}")
    if isinstance(fault, NoMem):
        raise AllocationError(call, f"out of memory {because}")
    if isinstance(fault, Crash):
        os.kill(os.getpid(), fault.signal)
    while True:  # a hang; or until the signal arrives
        time.sleep(3600)

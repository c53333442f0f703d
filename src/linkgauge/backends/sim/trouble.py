"""Applies scheduled faults to the cells that are being measured."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import cache

import msgspec

from linkgauge.backends.protocol import Copy
from linkgauge.model.errors import Phase
from linkgauge.model.hardware.map import Resource
from linkgauge.model.transfer import Transfer

from .memory import SimBuffer
from .resources import Demand, Resources
from .schedule import Schedule, act, least_rate


class Trouble:
    """Applies scheduled faults to cells that enter a phase, and to their copies."""

    def __init__(self, schedule: Schedule, resources: Resources) -> None:
        self._schedule = schedule
        self._resources = resources
        self._cells: Mapping[int, Sequence[Transfer]] = {0: ()}
        self._phase: Phase = "plan"
        self._copies: list[tuple[int, Copy, frozenset[str]]] = []

    def enter(self, cells: Mapping[int, Sequence[Transfer]], phase: Phase) -> None:
        """Enters a phase of these cells. A fault may then raise an error, hang, or end the process.
        In the phase `verify`, bits may flip."""
        self._cells, self._phase = cells, phase
        if phase == "verify":
            self.flip()
        if not self._schedule.strikes:
            return
        # A collective crosses links that its transfers, each within a device, do not name.
        crossed: defaultdict[int, list[frozenset[str]]] = defaultdict(list)
        for of, _, own in self._copies:
            crossed[of].append(own)
        for number, transfers in cells.items():
            named = map(self._resources.touched, transfers)
            touched = frozenset[str]().union(*named, *crossed[number])
            strike = self._schedule.strike(number, phase, touched)
            if strike is not None:
                act(strike, phase)

    def begin(self, copies: Sequence[Copy], demands: Sequence[Demand]) -> list[Demand]:
        """Registers copies before they are measured. Returns what they demand of the machine. If a
        fault slows host threads, their demands are reduced."""
        numbers = [number for number, transfers in self._cells.items() for _ in transfers]
        if len(numbers) != len(copies):  # not driven cell by cell
            numbers = [min(self._cells)] * len(copies)
        touched = [demand.touched for demand in demands]
        self._copies = list(zip(numbers, copies, touched, strict=True))
        return [self._slowed(*both) for both in zip(numbers, copies, demands, strict=True)]

    def _slowed(self, number: int, copy: Copy, demand: Demand) -> Demand:
        """Returns the demand of host threads that a fault slows down. Threads are no shared
        resource, so their own rate is lowered."""
        rate = self._schedule.rate(number, {str(copy.transfer.engine.owner)})
        flow = msgspec.structs.replace(demand.flow, cap=demand.flow.cap * rate)
        return demand if rate == 1 else msgspec.structs.replace(demand, flow=flow)

    def capacity(self, demands: Sequence[Demand]) -> Mapping[Resource, float]:
        """Returns the capacity of the resources in bytes/s. All cells of a round share them, so the
        slowest rate of any cell counts."""
        if not self._schedule:
            return self._resources.capacity
        used = {resource for demand in demands for resource, _ in demand.flow.usage}
        cells, full = self._cells.keys(), self._resources.capacity
        least = cache(lambda faults: least_rate(faults, cells))  # many parts have the same faults
        aimed = self._schedule.aimed
        return {one: full[one] * least(aimed(self._resources.names[one])) for one in used}

    def sigma(self, place: int) -> float:
        """Returns the relative standard deviation that faults add to a copy. `place` is its
        index."""
        number, _, touched = self._copies[place]
        return self._schedule.sigma(number, touched)

    def stall(self, place: int, sample: int) -> float:
        """Returns the seconds that faults add to a sample of a copy. `place` is the copy's
        index."""
        if self._phase != "measure":
            return 0.0
        number, _, touched = self._copies[place]
        return self._schedule.stall(number, sample, touched)

    def flip(self) -> None:
        """Flips bits in the results of the prepared copies."""
        for number, copy, touched in self._copies:
            buffer = copy.destination or copy.source
            for offset, bit in self._schedule.flips(number, touched):
                if isinstance(buffer, SimBuffer) and offset < min(copy.size, buffer.size):
                    buffer.flip(offset, bit)

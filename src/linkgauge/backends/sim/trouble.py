"""What the schedule of faults does to the cells that are being measured."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from linkgauge.backends.protocol import Copy, Phase
from linkgauge.model.map import Resource
from linkgauge.model.transfer import Transfer

from .memory import SimBuffer
from .resources import Demand, Resources
from .schedule import Schedule, act


class Trouble:
    """Strikes the cells that a phase begins of, and what is prepared for them."""

    def __init__(self, schedule: Schedule, resources: Resources) -> None:
        self._schedule = schedule
        self._resources = resources
        self._cells: Mapping[int, Sequence[Transfer]] = {0: ()}
        self._phase: Phase = "plan"
        self._copies: list[tuple[int, Copy, frozenset[str]]] = []

    def enter(self, cells: Mapping[int, Sequence[Transfer]], phase: Phase) -> None:
        """Raises, hangs or dies where a fault says so; before the check, bits flip."""
        self._cells, self._phase = cells, phase
        if phase == "verify":
            self._flip()
        for number, transfers in cells.items():
            touched = frozenset[str]().union(*map(self._resources.touched, transfers))
            strike = self._schedule.strike(number, phase, touched)
            if strike is not None:
                act(strike, phase)

    def begin(self, copies: Sequence[Copy], demands: Sequence[Demand]) -> list[Demand]:
        """Copies are prepared, those of one cell after those of another. Their demands, of which
        those of host threads may have become smaller."""
        numbers = [number for number, transfers in self._cells.items() for _ in transfers]
        if len(numbers) != len(copies):  # not driven cell by cell
            numbers = [min(self._cells)] * len(copies)
        touched = [demand.touched for demand in demands]
        self._copies = list(zip(numbers, copies, touched, strict=True))
        return [self._slowed(*both) for both in zip(numbers, copies, demands, strict=True)]

    def _slowed(self, number: int, copy: Copy, demand: Demand) -> Demand:
        """Host threads are no resource that is shared: what they can do is their flow's cap."""
        rate = self._schedule.rate(number, {str(copy.transfer.engine.owner)})
        flow = msgspec.structs.replace(demand.flow, cap=demand.flow.cap * rate)
        return demand if rate == 1 else msgspec.structs.replace(demand, flow=flow)

    def capacity(self, demands: Sequence[Demand]) -> Mapping[Resource, float]:
        """Bytes a second of the resources that are used. All cells of a round share them: the
        slowest rate of any is that of all."""
        if not self._schedule:
            return self._resources.capacity
        used = {resource for demand in demands for resource, _ in demand.flow.usage}
        return {one: self._resources.capacity[one] * self._rate(one) for one in used}

    def _rate(self, resource: Resource) -> float:
        names = self._resources.names[resource]
        return min(self._schedule.rate(number, names) for number in self._cells)

    def sigma(self, place: int) -> float:
        """Relative standard deviation that comes on top for the copy at this place."""
        number, _, touched = self._copies[place]
        return self._schedule.sigma(number, touched)

    def stall(self, place: int, sample: int) -> float:
        """Seconds that this sample of the copy at this place lasts longer."""
        if self._phase != "measure":
            return 0.0
        number, _, touched = self._copies[place]
        return self._schedule.stall(number, sample, touched)

    def _flip(self) -> None:
        for number, copy, touched in self._copies:
            buffer = copy.destination or copy.source
            for offset, bit in self._schedule.flips(number, touched):
                if isinstance(buffer, SimBuffer) and offset < copy.size:
                    buffer.flip(offset, bit)

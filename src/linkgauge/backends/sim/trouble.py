"""Applies scheduled faults to cells, and shows them in the facts that are read from the machine.
Their effects are the same in every process and resumed run."""

from __future__ import annotations

import math
import os
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence, Set
from functools import cache, lru_cache
from itertools import product
from typing import NoReturn, TypeVar

import msgspec

from linkgauge.backends.protocol import Copy
from linkgauge.model.errors import AllocationError, DeviceLost, Phase
from linkgauge.model.hardware.inventory import PciLink
from linkgauge.model.hardware.map import Resource
from linkgauge.model.hardware.pcie import SPEEDS, link_rate
from linkgauge.model.transfer import Transfer

from .faults import (
    Busy,
    Crash,
    Drift,
    Fault,
    Flip,
    Hot,
    Jitter,
    Lost,
    NoMem,
    Slow,
    Stall,
    Strike,
    least_rate,
)
from .hardware import Hardware, SimLink
from .memory import SimBuffer
from .resources import Demand, Resources, names_of

_Kind = TypeVar("_Kind", bound=Fault)


class Trouble:
    def __init__(self, faults: Sequence[Fault], resources: Resources) -> None:
        self._faults = faults
        self._strikes = [fault for fault in faults if isinstance(fault, Strike)]
        self._resources = resources
        self._cells: Mapping[int, Sequence[Transfer]] = {0: ()}
        self._phase: Phase = "plan"
        self._copies: list[tuple[int, Copy, frozenset[str]]] = []

    def enter(self, cells: Mapping[int, Sequence[Transfer]], phase: Phase) -> None:
        """May raise an error, hang or end the process. In the phase `verify`, bits may flip."""
        self._cells, self._phase = cells, phase
        if phase == "verify":
            self.flip()
        if not self._strikes:
            return
        # A collective crosses links that its transfers, each within a device, do not name.
        crossed: defaultdict[int, list[frozenset[str]]] = defaultdict(list)
        for of, _, own in self._copies:
            crossed[of].append(own)
        for number, transfers in cells.items():
            named = map(self._resources.touched, transfers)
            touched = frozenset[str]().union(*named, *crossed[number])
            for strike in self._strikes:
                if strike.is_due(number, phase) and strike.aims_at(touched):
                    _act(strike, phase)

    def begin(self, copies: Sequence[Copy], demands: Sequence[Demand]) -> list[Demand]:
        """Registers copies. Returns their demands, lower where a fault slows host threads."""
        numbers = [number for number, transfers in self._cells.items() for _ in transfers]
        if len(numbers) != len(copies):  # not driven cell by cell
            numbers = [min(self._cells)] * len(copies)
        touched = [demand.touched for demand in demands]
        self._copies = list(zip(numbers, copies, touched, strict=True))
        return [self._slowed(*both) for both in zip(numbers, copies, demands, strict=True)]

    def _slowed(self, number: int, copy: Copy, demand: Demand) -> Demand:
        """Lowers the transfer's own rate, since host threads are no shared resource to slow."""
        aimed = self._aimed({str(copy.transfer.engine.owner)})
        rate = math.prod(fault.left(number) for fault in aimed if number in fault.cells)
        flow = msgspec.structs.replace(demand.flow, cap=demand.flow.cap * rate)
        return demand if rate == 1 else msgspec.structs.replace(demand, flow=flow)

    def capacity(self, demands: Sequence[Demand]) -> Mapping[Resource, float]:
        """Returns bytes/s. A round's cells share a resource, at the lowest rate of any of them."""
        if not self._faults:
            return self._resources.capacity
        used = {resource for demand in demands for resource, _ in demand.flow.usage}
        cells, full = self._cells.keys(), self._resources.capacity
        least = cache(lambda faults: least_rate(faults, cells))  # many parts have the same faults
        return {one: full[one] * least(self._aimed(self._resources.names[one])) for one in used}

    def _aimed(self, names: Set[str]) -> tuple[Fault, ...]:
        return tuple(fault for fault in self._faults if fault.aims_at(names))

    def _on(self, kind: type[_Kind], place: int) -> Iterator[_Kind]:
        cell, _, touched = self._copies[place]
        for fault in self._faults:
            if isinstance(fault, kind) and cell in fault.cells and fault.aims_at(touched):
                yield fault

    def sigma(self, place: int) -> float:
        """Returns the relative standard deviation that faults add to copy `place`."""
        return math.hypot(*(fault.sigma for fault in self._on(Jitter, place)))

    def stall(self, place: int, sample: int) -> float:
        """Returns the seconds by which faults delay a sample. Samples are numbered from 0."""
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


# Faults in the facts that are read from a simulated machine. A slow PCIe link has fewer lanes or a
# lower speed, a slow fabric link fewer active links, a slow device a lower clock. If this does not
# explain the whole slowdown, error counters rise. Other faults show only in results.

SLOWDOWN = "hardware slowdown"
ERRORS = 1000
"""The number of errors that a bad link counts in each cell."""
_WIDTHS = (1, 2, 4, 8, 16, 32)
_EQUIVALENT = 0.01
"""Rates count as equal if their relative difference is smaller than this."""


class Symptoms:
    """`cells` of the plan have been measured. The last one decides which faults are present."""

    def __init__(self, hardware: Hardware, faults: Sequence[Fault] = (), cells: int = 0) -> None:
        self._faults = [fault for fault in faults if isinstance(fault, Slow | Drift)]
        self._reported = [fault for fault in faults if isinstance(fault, Hot | Busy)]
        self._cells = cells

    def clock(self, device: str) -> float:
        """Returns the fraction of the full clock at which a device runs."""
        return min(1.0, self._rate({device}))

    def temperature(self, device: str) -> float | None:
        """Returns a device's temperature in °C, or None if no fault sets it."""
        found = (one.celsius for one in self._reporting(device) if isinstance(one, Hot))
        return max(found, default=None)

    def busy(self, device: str) -> bool:
        return any(isinstance(one, Busy) for one in self._reporting(device))

    def _reporting(self, device: str) -> Iterator[Fault]:
        at = max(0, self._cells - 1)
        return (one for one in self._reported if at in one.cells and one.aims_at({device}))

    def pcie(self, link: SimLink, *, idle: bool) -> PciLink | None:
        """Returns None if the description lacks the link's speed or width, or only assumes them."""
        kind = link.common
        if kind.speed is None or kind.width is None or kind.assumed:
            return None
        speed, width = _trained(kind.speed, kind.width, self._rate(names_of(link)))
        highest = kind.max_speed or kind.speed, kind.max_width or kind.width
        if idle and kind.idle_speed is not None:
            speed = min(speed, kind.idle_speed)
        # What carries more than it shows only rests: it may train to all that it can.
        rests = link.rate > link_rate(kind.speed, kind.width) * kind.count
        return PciLink(speed, width, *highest, target=highest[0] if rests else kind.speed)

    def active(self, link: SimLink) -> int:
        return _active(link.common.count, self._rate(names_of(link)))

    def errors(self, link: SimLink) -> int:
        names = names_of(link)
        return ERRORS * sum(
            fault.cells.before(self._cells)
            for fault in self._faults
            if fault.aims_at(names) and not _is_explained(link, fault)
        )

    def _rate(self, names: Set[str]) -> float:
        aimed = [fault for fault in self._faults if fault.aims_at(names)]
        return least_rate(aimed, (max(0, self._cells - 1),))


def _is_explained(link: SimLink, fault: Fault) -> bool:
    if not isinstance(fault, Slow):
        return False
    kind = link.common
    if kind.kind != "pcie":
        left = _active(kind.count, fault.rate) / kind.count
    elif kind.speed is None or kind.width is None:
        return False
    else:
        speed, width = _trained(kind.speed, kind.width, fault.rate)
        left = link_rate(speed, width) / link_rate(kind.speed, kind.width)
    return math.isclose(left, fault.rate, rel_tol=_EQUIVALENT)


@lru_cache(maxsize=1024)
def _trained(speed: float, width: int, rate: float) -> tuple[float, int]:
    """Returns the speed and width of the slowest link that still has `rate` of the full rate."""
    least = rate * link_rate(speed, width) * (1 - _EQUIVALENT)
    states = product(
        (*(s for s in SPEEDS if s < speed), speed), (*(w for w in _WIDTHS if w < width), width)
    )
    carrying = [state for state in states if link_rate(*state) >= least]
    # Of two with equal rates, the wider one: links reduce their speed first.
    return min(carrying, key=lambda one: (link_rate(*one), -one[1]), default=(speed, width))


def _active(count: int, rate: float) -> int:
    return min(count, max(1, math.ceil(count * rate * (1 - _EQUIVALENT))))

"""What a fault looks like to who reads the machine, as it would on a real one.

A slow PCIe link was trained to fewer lanes or a lower speed, a slow fabric has lost links; what
that does not explain shows in counters of errors that rise. A slow device's clock is held down.
Other faults show in results alone.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import product

from linkgauge.model.inventory import PciLink
from linkgauge.model.pcie import SPEEDS, link_rate

from .faults import Cells, Drift, Fault, Slow
from .hardware import Hardware, SimLink
from .resources import names_of
from .schedule import Schedule

SLOWDOWN = "hardware slowdown"
ERRORS = 1000
"""Errors that a bad link counts in a cell."""
_WIDTHS = (1, 2, 4, 8, 16, 32)
_ALIKE = 0.01
"""Rates that differ by less are taken for the same."""


class Symptoms:
    """What shows of these faults before cell number `cells` of the plan: so many went by. The last
    of them tells which faults are in force; before all, the first does."""

    def __init__(self, hardware: Hardware, faults: Sequence[Fault] = (), cells: int = 0) -> None:
        self._faults = [fault for fault in faults if isinstance(fault, Slow | Drift)]
        self._schedule = Schedule(self._faults)
        self._cells = cells
        self._switches = {switch.name for switch in hardware.switches}

    def clock(self, device: str) -> float:
        """The fraction of its clock that a device is held to."""
        return min(1.0, self._rate({device}))

    def pcie(self, link: SimLink) -> PciLink | None:
        """What a PCIe link can do and what it was trained to; None where it is not described."""
        kind = link.common
        if kind.speed is None or kind.width is None:
            return None
        speed, width = _trained(kind.speed, kind.width, self._rate(self._names(link)))
        highest = kind.max_speed or kind.speed, kind.max_width or kind.width
        return PciLink(speed, width, *highest, target=kind.speed)

    def active(self, link: SimLink) -> int:
        """How many of a fabric's links, that are one here, are up."""
        return _active(link.common.count, self._rate(self._names(link)))

    def errors(self, link: SimLink) -> int:
        """What the link's counters have come to."""
        names = self._names(link)
        return ERRORS * sum(
            _overlap(fault.cells, self._cells)
            for fault in self._faults
            if fault.aims_at(names) and not _is_explained(link, fault)
        )

    def _rate(self, names: set[str]) -> float:
        return self._schedule.rate(max(0, self._cells - 1), names)

    def _names(self, link: SimLink) -> set[str]:
        """A link's own. A switch has no other symptoms than its links."""
        return {*names_of(link), *self._switches & {link.a, link.b}}


def _is_explained(link: SimLink, fault: Fault) -> bool:
    """Whether fewer or slower lanes are all that this fault is."""
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
    return math.isclose(left, fault.rate, rel_tol=_ALIKE)


def _trained(speed: float, width: int, rate: float) -> tuple[float, int]:
    """The slowest speed and width that still carry this fraction of the full rate."""
    least = rate * link_rate(speed, width) * (1 - _ALIKE)
    states = product(
        (*(s for s in SPEEDS if s < speed), speed), (*(w for w in _WIDTHS if w < width), width)
    )
    carrying = [state for state in states if link_rate(*state) >= least]
    # Of two that are alike, the wider one: speed is what gives way first.
    return min(carrying, key=lambda one: (link_rate(*one), -one[1]), default=(speed, width))


def _active(count: int, rate: float) -> int:
    return min(count, max(1, math.ceil(count * rate * (1 - _ALIKE))))


def _overlap(cells: Cells, before: int) -> int:
    """How many of these cells have a number below `before`."""
    end = before if cells.last is None else min(before, cells.last + 1)
    return max(0, end - cells.first)

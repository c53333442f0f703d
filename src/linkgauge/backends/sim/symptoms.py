"""Shows faults in the facts that are read from a simulated machine. A slow PCIe link has fewer
lanes or a lower speed, a slow fabric link fewer active links, a slow device a lower clock. If this
does not explain the whole slowdown, error counters rise. Other faults show only in results."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence, Set
from functools import lru_cache
from itertools import product

from linkgauge.model.hardware.inventory import PciLink
from linkgauge.model.hardware.pcie import SPEEDS, link_rate

from .faults import Busy, Drift, Fault, Hot, Slow, least_rate
from .hardware import Hardware, SimLink
from .resources import names_of

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

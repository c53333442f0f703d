"""Computes the figures to expect if every link had its highest speed and width."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

from msgspec.structs import replace

from linkgauge.model.documents.result import CellResult, Expected
from linkgauge.model.hardware.inventory import Accelerator, FabricLink, PciFunction, PciLink
from linkgauge.model.hardware.machine import Machine
from linkgauge.model.notation import parse_memory

from .dram import Ceilings
from .expect import Expectations

_UPPER_ENDS = ("root port", "downstream port")
"""Ports whose link is described by the function below, which knows what both ends support."""
LEAST = 1.001
"""The ratio from which a nominal figure exceeds the expected one by more than rounding."""


class Nominal:
    def __init__(self, machine: Machine, ceilings: Ceilings) -> None:
        self._ceilings = ceilings
        self._best = at_best(machine)
        degraded = () if self._best is machine else _degraded(machine, self._best)
        self._degraded = frozenset(map(parse_memory, degraded))

    @cached_property
    def _expectations(self) -> Expectations:
        return Expectations(self._best, self._ceilings)

    def of(self, cell: CellResult, expected: Expected, size: int, unit: str) -> float | None:
        """Returns the figure to expect if all links were at their best; None if it is no higher."""
        figure = expected.figure
        is_below = not self._degraded.isdisjoint(cell.places) or self._was_slow(cell)
        if figure is None or not is_below:
            return None
        best = self._expectations.of(cell, size, unit, loaded=False).expected
        nominal = best.theoretical if expected.achievable is None else best.achievable
        share = cell.share(nominal, figure)
        return nominal if share is not None and share * LEAST < 1 else None

    def _was_slow(self, cell: CellResult) -> bool:
        best = self._best.accelerators
        for one in cell.readings:
            link = best[one.memory].link if one.memory in best else PciLink()
            is_slower = (one.link_speed or 0) < (link.speed or 0)
            if is_slower or (one.link_width or 0) < (link.width or 0):
                return True
        return False


def at_best(machine: Machine) -> Machine:
    """Returns the machine with each PCIe link as fast as both ends support, and with all fabric
    links active. Returns the same object if nothing changes."""
    inventory = machine.inventory
    if inventory is None:
        return machine
    reported = {a.pci: a.link for a in inventory.accelerators if a.pci}

    pci: list[PciFunction] = []
    for function in inventory.pci:
        ends = [function.link]
        if function.port not in _UPPER_ENDS:
            port = None if machine.is_virtual else machine.functions.get(function.parent or "")
            ends = [port.link if port else PciLink(), reported.get(function.address, PciLink())]
        link = _at_most(function.link, *ends)
        pci.append(function if link == function.link else replace(function, link=link))
    best = replace(
        inventory,
        pci=tuple(pci),
        accelerators=tuple(map(_with_all_links, inventory.accelerators)),
    )
    return machine if best == inventory else replace(machine, inventory=best)


def _degraded(machine: Machine, best: Machine) -> Iterator[str]:
    for memory, address in machine.addresses.items():
        line = (address, *(bridge.address for bridge in machine.pci_tree.above(address)))
        ends = (machine.functions.get(at) != best.functions.get(at) for at in line)
        is_slow = machine.accelerators.get(memory) != best.accelerators.get(memory) or any(ends)
        if memory != address and is_slow:
            yield memory


def _at_most(link: PciLink, *others: PciLink) -> PciLink:
    speeds = [other.max_speed for other in others if other.max_speed]
    widths = [other.max_width for other in others if other.max_width]
    speed = min((*speeds, link.max_speed or speeds[0])) if speeds else link.speed
    width = min((*widths, link.max_width or widths[0])) if widths else link.width
    return replace(link, speed=speed, width=width)


def _with_all_links(accelerator: Accelerator) -> Accelerator:
    """Returns the accelerator with all links active. Active links supply unknown ends and rates."""
    best = _at_most(accelerator.link, accelerator.link)
    if not any(link.active is False for link in accelerator.links):
        return accelerator if best == accelerator.link else replace(accelerator, link=best)
    active = [link for link in accelerator.links if link.active]
    remotes, rates = {link.remote for link in active}, {link.rate for link in active}

    def up(link: FabricLink) -> FabricLink:
        remote = link.remote or (active[0].remote if len(remotes) == 1 else None)
        rate = link.rate or (active[0].rate if len(rates) == 1 else None)
        if link.active is not False or (remote is None and remotes != {None}):
            return link
        return replace(link, active=True, remote=remote, rate=rate)

    return replace(accelerator, links=tuple(map(up, accelerator.links)), link=best)

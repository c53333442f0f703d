"""Corrects reported speeds of PCIe links, which may be too low because idle links are slower. A
link that carried more than its reported speed allows must have been faster. A reported speed is
confirmed if the link carried about as much while all other links on the path can carry more."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

from msgspec.structs import replace

from linkgauge.model.documents.result import CellResult, Result, Run
from linkgauge.model.hardware.inventory import PciFunction
from linkgauge.model.hardware.machine import Machine
from linkgauge.model.hardware.pcie import SPEEDS, link_rate
from linkgauge.model.hardware.wiring import Wire
from linkgauge.model.units import BANDWIDTH

_AS_READ = 0.6
"""The least share of its rate that a link carries if it limits a copy: reads from the host reach
0.76 of it on the slowest healthy hardware (docs/expect.md), kernels 0.56."""


def run_of(run: Run) -> Run:
    """Applies `as_one`, and corrects the reported speed of each link that carried more."""
    run = as_one(run)
    carried = most_carried(run.machine, run.results)
    if not carried:
        return run
    proven = {at: speed for wire, rate, _ in carried.values() for at, speed in _proven(wire, rate)}
    if not proven:
        return run
    known = run.machine.known
    pci = tuple(_faster(one, proven) for one in known.pci)
    machine = replace(run.machine, inventory=replace(known, pci=pci))
    after = run.after and replace(run.after, pci=tuple(_faster(o, proven) for o in run.after.pci))
    return replace(run, machine=machine, after=after)


def most_carried(
    machine: Machine, results: Sequence[Result]
) -> Mapping[str, tuple[Wire, float, bool]]:
    """Returns PCIe links whose reported speed is below the maximum, by name. A value is the link,
    the highest bytes/s of a copy over it, and true if this copy crosses no slower link."""
    slow = set[str]()
    for wire in machine.wiring.wires:
        links = [end.link for end in _ends(wire)]
        best = min((link.max_speed for link in links if link.max_speed), default=0.0)
        if any(link.speed and link.speed < best for link in links):
            slow.add(wire.name)
    found: dict[str, tuple[Wire, float, bool]] = {}
    for result in results if slow else ():
        for cell in result.cells if result.unit == BANDWIDTH.symbol else ():
            if cell.status == "pass" and len(cell.transfers) == 1 and cell.headline:
                for begin, end, _, part in machine.wiring.carried_out(cell)[0].legs():
                    crossed = machine.wiring.route(str(begin), str(end)) or ()
                    rates = {wire.name: _rate(wire) for wire, _ in crossed}
                    for wire, crossing in crossed:
                        if wire.name in slow:
                            rate = cell.headline * crossing.share * part
                            only = min(rates.values()) == rates[wire.name]
                            before = found.get(wire.name, (wire, 0.0, False))
                            found[wire.name] = max(before, (wire, rate, only), key=lambda o: o[1])
    return found


def is_confirmed(wire: Wire, carried: float, *, narrowest: bool) -> bool:
    return narrowest and _AS_READ * _rate(wire) <= carried <= _rate(wire)


def _ends(wire: Wire) -> list[PciFunction]:
    return [*filter(None, (wire.lower, wire.upper))] if wire.kind == "pcie" else []


def _rate(wire: Wire) -> float:
    links = (end.link for end in _ends(wire))
    rates = (link_rate(link.speed, link.width) for link in links if link.speed and link.width)
    return min(rates, default=math.inf)


def _proven(wire: Wire, carried: float) -> Iterator[tuple[str, float]]:
    """Yields each end of `wire` that carried more than its reported speed allows: its address, and
    the lowest speed that suffices (a supported speed, if possible)."""
    ends = _ends(wire)
    able = [*(end.link.max_speed for end in ends), wire.upper and wire.upper.link.target]
    for end in ends:
        link = end.link
        if link.speed and link.width and carried > link_rate(link.speed, link.width):
            limits, lowest = (
                [s for s in speeds if s and carried <= link_rate(s, link.width)]
                for speeds in (able, SPEEDS)
            )
            yield end.address, min(limits or lowest, default=link.max_speed or link.speed)


def _faster(function: PciFunction, proven: Mapping[str, float]) -> PciFunction:
    speed, link = proven.get(function.address), function.link
    if speed is None or link.speed is None or link.speed >= speed:
        return function
    target = link.target and max(link.target, speed)
    return replace(function, link=replace(link, speed=speed, target=target))


def as_one(run: Run) -> Run:
    """Removes a run's ranks if all are on one machine and each has its own device."""
    machine = run.machine.alone
    return run if machine is run.machine else replace(run.with_cells(_cell), machine=machine)


def with_ranks(judged: Sequence[Result], measured: Sequence[Result]) -> tuple[Result, ...]:
    cells = iter([cell for result in measured for cell in result.cells])
    return tuple(
        one.with_cells(lambda cell: replace(cell, transfers=next(cells).transfers))
        for one in judged
    )


def _cell(cell: CellResult) -> CellResult:
    alone = (transfer.placed(lambda memory: memory.unranked) for transfer in cell.transfers)
    return replace(cell, transfers=tuple(alone))

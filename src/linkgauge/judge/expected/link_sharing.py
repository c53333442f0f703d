"""Computes the load of links while the cells of a round run at the same time. If no link is
overloaded, each transfer should be as fast as alone."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator

from linkgauge.model.documents.result import CellResult, Result
from linkgauge.model.hardware.map import Crossing
from linkgauge.model.hardware.wiring import Wire, Wiring
from linkgauge.model.notes import Concurrent
from linkgauge.model.transfer import Transfer

_FULL = 1.01
"""The load above which a link is overloaded: more than 1, because rates are not exact."""


def is_concurrent(cell: CellResult) -> bool:
    return bool(cell.notes) and any(isinstance(note, Concurrent) for note in cell.notes)


class LinkSharing:
    """The load of each link: the sum of the rates that its transfers reach alone ÷ its own rate."""

    def __init__(self, wiring: Wiring, result: Result) -> None:
        self._wiring = wiring
        self._load: defaultdict[tuple[int | None, str, bool], float] = defaultdict(float)
        for cell in result.cells:
            if is_concurrent(cell):
                for transfer in cell.transfers:
                    for wire, crossing, load in self.crossed(transfer):
                        self._load[cell.round, wire.name, crossing.forward] += load

    def of(self, cell: CellResult) -> tuple[float, ...] | None:
        """Returns the loads of a cell's links, the highest first. The result is empty if the cell
        was measured alone, and None if a link is overloaded or the cell's round is unknown."""
        if not is_concurrent(cell):
            return ()
        if cell.round is None:
            return None
        loads = (
            self._load[cell.round, wire.name, crossing.forward]
            for transfer in cell.transfers
            for route, _ in self._routes(transfer)
            for wire, crossing in route
        )
        found = tuple(sorted(loads, reverse=True))
        return None if found and found[0] > _FULL else found

    def _routes(self, transfer: Transfer) -> Iterator[tuple[list[tuple[Wire, Crossing]], float]]:
        for begin, end, _, part in transfer.legs():
            yield self._wiring.route(str(begin), str(end)) or [], part

    def crossed(self, transfer: Transfer) -> Iterator[tuple[Wire, Crossing, float]]:
        """Yields the transfer's links, each with the load that the transfer causes alone."""
        for route, part in self._routes(transfer):
            # Between hosts, the PCIe links on the way to adapters have their best rate.
            is_away = any(wire.kind == "network" for wire, _ in route)
            links = [
                (wire, crossing, (wire.best if is_away else wire.nominal) or 0.0)
                for wire, crossing in route
                if not (is_away and wire.kind == "bridge")
            ]
            alone = min((rate / c.share for _, c, rate in links), default=0.0)
            for wire, crossing, rate in links:
                share = crossing.share * part
                yield wire, crossing, share * alone / rate if alone else math.inf

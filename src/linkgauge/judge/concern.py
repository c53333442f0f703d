"""Which findings are about something that a run has measured."""

from __future__ import annotations

from collections.abc import Callable

from linkgauge.model.collective import Collective
from linkgauge.model.exchanges import pairs_of
from linkgauge.model.part import Kind, Part
from linkgauge.model.result import CellResult

from .cases import cases_of
from .findings import Evidence, Finding


def concerns_measured(evidence: Evidence) -> Callable[[Finding], bool]:
    """Whether a finding is about a memory, a link or a switch that cells of the run touch, or rests
    on such cells: none about the machine as a whole (its governor), or a part left out, is."""
    cases = cases_of(evidence)
    parts = _exchanging(evidence).union(*(case.touched for case in cases))
    ends = {end for part in parts if part.kind in _OF_DEVICES for end in part.ends}
    names = {case.name for case in cases}

    def concerns(finding: Finding) -> bool:
        part = finding.about
        is_device = isinstance(part, Part) and part.kind in ("device", "function")
        touched = part in parts or (is_device and not ends.isdisjoint(finding.ends))
        return touched or not names.isdisjoint(finding.cells)

    return concerns


_OF_DEVICES: tuple[Kind, ...] = ("device", "PCIe link", "PCIe link above")


def _exchanging(evidence: Evidence) -> frozenset[Part]:
    """The parts on the ways between the ranks of collectives."""
    cells = (cell for cell in evidence.cells() if cell.status != "skip")
    pairs = {pair for cell in cells for pair in exchanging(cell)}
    if not pairs:
        return frozenset()
    wiring = evidence.machine.wiring
    return frozenset().union(*(wiring.between(*pair) for pair in pairs))


def exchanging(cell: CellResult) -> tuple[tuple[str, str], ...]:
    """The devices that send each other something, if it is a collective."""
    if not isinstance(cell.operation, Collective):
        return ()
    ranks = [str(transfer.engine.owner) for transfer in cell.transfers]
    return tuple((ranks[a], ranks[b]) for a, b in pairs_of(cell.operation, len(ranks)))

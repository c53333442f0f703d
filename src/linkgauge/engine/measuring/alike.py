"""Cells of a simulated machine that differ only in the names of the parts they use.

A rack has thousands of pairs that nothing tells apart. Their visit is simulated `DRAWS` times, with
different noise, and every pair gets the result of one of these visits. The cells of a simulated
machine with few devices are all measured, and so are those of every real machine."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING
from zlib import crc32

from msgspec.structs import replace

from linkgauge.engine.workers.messages import Visit
from linkgauge.model.documents.result import CellResult, Placement, PlannedCell
from linkgauge.model.hardware.inventory import Reading
from linkgauge.model.memory import Memory
from linkgauge.model.transfer import Placed

if TYPE_CHECKING:
    from linkgauge.backends.sim import SimBackend

DRAWS = 16
"""The number of visits of alike cells that have noise of their own, so that statistics over alike
cells stay meaningful. A machine with at most as many devices has too few alike cells."""

Measure = Callable[[], tuple[CellResult, ...]]


class AlikeCells:
    """The visits of alike cells in this pass over the plan."""

    def __init__(self, simulated: SimBackend) -> None:
        self._simulated = simulated
        self._pass: int | None = None
        self._visited: dict[Hashable, CellResult] = {}
        self._is_large = len(simulated.devices()) > DRAWS

    def measure(
        self, cells: Sequence[PlannedCell], size: int, visit: Visit, measure: Measure
    ) -> tuple[CellResult, ...]:
        """Returns the results of a visit. `measure` makes the visit, unless an alike cell already
        had it."""
        self._simulated.draw = alike = None
        if self._is_large and len(cells) == 1:
            alike = self._simulated.likeness(cells[0], size)
        if alike is None:
            return measure()
        if self._pass != visit.number:
            self._pass = visit.number
            self._visited.clear()
        (cell,) = cells
        key = alike, crc32(b"%d" % cell.number) % DRAWS
        at = key, visit.taken, visit.spent
        if at in self._visited:
            self._simulated.enter({visit.passed + cell.number: cell.transfers}, "plan")
            return (_of(cell, self._visited[at]),)
        # Drawn by what the cells have in common, so that a resumed run has the same figures.
        self._simulated.draw = crc32(repr(key).encode())
        (found,) = measure()
        if found.status == "pass":
            self._visited[at] = found
        return (found,)


def _of(cell: PlannedCell, known: CellResult) -> CellResult:
    """Returns the result of an alike cell with the names of this cell."""
    names = {str(old): new for old, new in zip(_memories(known), _memories(cell), strict=True)}
    return replace(
        known,
        row=cell.row,
        column=cell.column,
        transfers=cell.transfers,
        placement=tuple([_placed(one, names[one.memory]) for one in known.placement]),
        readings=tuple([_read(one, names[one.memory]) for one in known.readings]),
    )


# Thousands of cells have the same few.
@lru_cache(maxsize=1 << 12)
def _placed(known: Placement, own: Memory) -> Placement:
    return replace(known, memory=str(own), node=own.index if own.is_host else None)


@lru_cache(maxsize=1 << 12)
def _read(known: Reading, own: Memory) -> Reading:
    return replace(known, memory=str(own))


def _memories(cell: Placed) -> Iterator[Memory]:
    """Yields the memories that a cell's result names."""
    for transfer in cell.transfers:
        for memory in (transfer.source, transfer.destination, transfer.engine.owner):
            yield memory
            yield memory.place

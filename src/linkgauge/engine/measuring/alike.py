"""Cells of a simulated machine that differ only in the names of the parts they use.

A rack has thousands of pairs that nothing tells apart. Their visit is simulated `DRAWS` times, with
different noise, and every pair gets the result of one of these visits. Every cell of a real machine
is measured."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple
from zlib import crc32

from msgspec.structs import replace

from linkgauge.engine.workers.messages import Visit
from linkgauge.model.documents.result import CellResult, Placement, PlannedCell
from linkgauge.model.hardware.inventory import Reading
from linkgauge.model.memory import Memory
from linkgauge.model.transfer import Transfer

if TYPE_CHECKING:
    from linkgauge.backends.sim import SimBackend

DRAWS = 16
"""The number of visits of alike cells that have noise of their own, so that statistics over alike
cells stay meaningful."""

Measure = Callable[[], tuple[CellResult, ...]]


class AlikeCells:
    """The visits of alike cells in this pass over the plan."""

    def __init__(self, simulated: SimBackend) -> None:
        self._simulated = simulated
        self._pass: int | None = None
        self._visited: dict[Hashable, _Visited] = {}

    def measure(
        self, cells: Sequence[PlannedCell], size: int, visit: Visit, measure: Measure
    ) -> tuple[CellResult, ...]:
        """Returns the results of a visit. `measure` makes the visit, unless an alike cell already
        had it."""
        self._simulated.draw = alike = None
        self._simulated.places = ()
        if len(cells) == 1:
            alike = self._simulated.likeness(cells[0], size)
        if alike is None:
            return measure()
        if self._pass != visit.number:
            self._pass = visit.number
            self._visited.clear()
        (cell,) = cells
        key = alike.key, crc32(b"%d" % cell.number) % DRAWS, visit.passed
        at = key, visit.taken, visit.spent
        if at in self._visited:
            self._simulated.enter({visit.passed + cell.number: cell.transfers}, "plan")
            return (self._visited[at].result_of(cell, alike.order),)
        # Drawn by what the cells have in common, so that a resumed run has the same figures.
        self._simulated.draw = crc32(repr(key).encode())
        self._simulated.places = alike.places
        (found,) = measure()
        if found.status == "pass":
            self._visited[at] = _Visited(found, alike.order)
        return (found,)


class _Visited(NamedTuple):
    """The result of a visit, and the order in which its cell's transfers correspond to those of
    alike cells."""

    result: CellResult
    order: tuple[int, ...]

    def result_of(self, cell: PlannedCell, order: tuple[int, ...]) -> CellResult:
        """Returns the result of an alike cell, with the names of this cell."""
        known, parts = self.result, self.result.parts
        pairs = list(zip(self.order, order, strict=True))
        names: dict[str, Memory] = {}
        for one, other in pairs:
            for old, new in zip(
                _ends(known.transfers[one]), _ends(cell.transfers[other]), strict=True
            ):
                names[str(old)], names[str(old.place)] = new, new.place
        if parts and order != self.order:
            at = dict(pairs)
            moved = (replace(part, transfer=at[part.transfer]) for part in parts)
            parts = tuple(sorted(moved, key=lambda part: part.transfer))
        return replace(
            known,
            row=cell.row,
            column=cell.column,
            transfers=cell.transfers,
            parts=parts,
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


def _ends(transfer: Transfer) -> tuple[Memory, Memory, Memory]:
    """Returns the memories that a result names."""
    return transfer.source, transfer.destination, transfer.engine.owner

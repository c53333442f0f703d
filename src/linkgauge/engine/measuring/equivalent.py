"""Simulates equivalent cells, which differ only in the names of the devices and nodes they use.

A rack has thousands of such cells. A repetition of them is simulated `DRAWS` times with different
noise, and each cell gets one of these results. On a real machine, every cell is measured."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from functools import lru_cache
from itertools import chain
from operator import attrgetter
from typing import TYPE_CHECKING
from zlib import crc32

from msgspec.structs import replace

from linkgauge.engine.workers.outcomes import Repetition
from linkgauge.model.documents.result import CellResult, Placement, PlannedCell
from linkgauge.model.grouped import Shared
from linkgauge.model.hardware.inventory import Reading
from linkgauge.model.memory import Memory

if TYPE_CHECKING:
    from linkgauge.backends.sim.backend import SimBackend

DRAWS = 4
"""How often a repetition of equivalent cells is simulated, each time with different noise. So
statistics over equivalent cells stay meaningful (docs/simulation-method.md)."""

Measure = Callable[[Sequence[PlannedCell], int, Repetition], tuple[CellResult, ...]]


_Repeated = tuple[CellResult, Sequence[tuple[str, str]]]
"""A repetition that equivalent cells share, and the names of the memories and of their places in
the transfers."""


class EquivalentCells:
    def __init__(self, simulated: SimBackend) -> None:
        self._simulated = simulated
        self._pass: int | None = None
        self._repeated: dict[Hashable, _Repeated] = {}
        self._shared = Shared()  # of a rack's 50,000 placements, 11,000 differ

    def measure(
        self, cells: Sequence[PlannedCell], size: int, repetition: Repetition, measure: Measure
    ) -> tuple[CellResult, ...]:
        """Measures cells with `measure`, or returns the results of an equivalent cell."""
        self._simulated.draw = self._simulated.equivalent = equivalent = None
        if len(cells) == 1:
            equivalent = self._simulated.likeness(cells[0], size)
        if equivalent is None:
            return measure(cells, size, repetition)
        if self._pass != repetition.number:
            self._pass = repetition.number
            self._repeated.clear()
            self._simulated.forget_ways()  # few cells are repeated
        (cell,) = cells
        key = equivalent.key, crc32(b"%d" % cell.number) % DRAWS, repetition.passed
        at = key, repetition.taken, repetition.spent
        found = self._repeated.get(at)
        if found is not None:
            self._simulated.enter({repetition.passed + cell.number: cell.transfers}, "plan")
            return (self._of(cell, found, equivalent.order),)
        # Drawn by what the cells have in common: it does not matter which of them is measured.
        self._simulated.draw, self._simulated.equivalent = crc32(repr(key).encode()), equivalent.key
        # Equivalent cells use one order, so that a resumed run has the same figures.
        ordered = tuple(map(cell.transfers.__getitem__, equivalent.order))
        (result,) = measure([replace(cell, transfers=ordered)], size, repetition)
        result = replace(result, samples=Shared().each(result.samples))  # most are equal
        named = chain.from_iterable(map(attrgetter("named"), result.transfers))
        found = result, [(str(memory), str(memory.place)) for memory in named]
        if result.status == "pass":
            self._repeated[at] = found
        return (self._of(cell, found, equivalent.order),)

    def _of(self, cell: PlannedCell, repeated: _Repeated, order: Sequence[int]) -> CellResult:
        found, names = repeated
        ends = chain.from_iterable([cell.transfers[number].named for number in order])
        own: dict[str, Memory] = {}
        for (name, place), memory in zip(names, ends, strict=True):
            own[name], own[place] = memory, memory.place
        parts = found.parts
        if parts and any(place != at for place, at in enumerate(order)):
            moved = (replace(part, transfer=order[part.transfer]) for part in parts)
            parts = tuple(sorted(moved, key=lambda part: part.transfer))
        return replace(
            found,
            row=cell.row,
            column=cell.column,
            transfers=cell.transfers,
            parts=parts,
            placement=self._shared(
                tuple([_placed(one, own[one.memory]) for one in found.placement])
            ),
            readings=self._shared(tuple([_read(one, own[one.memory]) for one in found.readings])),
        )


# Thousands of cells have the same few.
@lru_cache(maxsize=1 << 12)
def _placed(known: Placement, own: Memory) -> Placement:
    return replace(known, memory=str(own), node=own.index if own.is_host else None)


@lru_cache(maxsize=1 << 12)
def _read(known: Reading, own: Memory) -> Reading:
    return replace(known, memory=str(own))

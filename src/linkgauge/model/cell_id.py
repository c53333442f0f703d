"""The identity of a cell, in the one form that plans, results and pages use."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import NamedTuple, Protocol, TypeVar

import msgspec

from .transfer import Place, Placed


class SheetId(NamedTuple):
    """The identity of a table of cells: a benchmark on one backend at one size (in bytes)."""

    benchmark: str
    backend: str
    size: int

    def cell(self, place: tuple[str, str], repeat: int = 0) -> CellId:
        return CellId(*self, *place, repeat)


class CellId(msgspec.Struct, frozen=True, order=True, gc=False, omit_defaults=True):
    """Identifies a cell in a plan, in a journal and between runs.

    benchmark: The benchmark's name.
    backend: The backend that measured it.
    size: Its result's size in bytes.
    row: The label of its row.
    column: The label of its column.
    repeat: Which of the identical results of a run it is of, from 0.
    """

    benchmark: str
    backend: str
    size: int
    row: str
    column: str
    repeat: int = 0

    @property
    def place(self) -> Place:
        return Place(self.row, self.column)

    @property
    def sheet(self) -> SheetId:
        return SheetId(self.benchmark, self.backend, self.size)

    @property
    def id(self) -> CellId:
        """The plain identity, without the fields that a subclass adds."""
        return self.sheet.cell(self.place, self.repeat)

    @property
    def name(self) -> str:
        """The cell's name: `benchmark [row, column]`."""
        return f"{self.benchmark} [{self.row}, {self.column}]"

    def __str__(self) -> str:
        return f"{self.benchmark} {self.place}"


class _OfSheet(Protocol):
    @property
    def benchmark(self) -> str: ...
    @property
    def backend(self) -> str: ...
    @property
    def size(self) -> int: ...


class _Laid(_OfSheet, Protocol):
    @property
    def sweep(self) -> bool: ...


class _AtPlace(Protocol):
    @property
    def place(self) -> Place: ...


_Sheet = TypeVar("_Sheet", bound=_OfSheet)


def sheet_id(of: _OfSheet) -> SheetId:
    """The identity of the table that a table, result or cell belongs to."""
    return SheetId(of.benchmark, of.backend, of.size)


def cell_id(sheet: _OfSheet, cell: _AtPlace) -> CellId:
    """The identity of a cell in a table that occurs only once."""
    return sheet_id(sheet).cell(cell.place)


def ends_of(cell: Placed) -> str:
    """The ends of a cell's transfers, as people type them: `host:0 -> cuda:3`, `cuda:0 <-> cuda:3`,
    `others -> cuda:3`, or `cuda:3` within a device. If its transfers share no end, the cell's
    place."""
    of = cell.transfers[:1] if cell.report.is_first else cell.transfers
    ways = dict.fromkeys(transfer.way for transfer in of)
    sources, destinations = ({way[at] for way in ways} for at in (0, 1))
    if len(sources) == len(destinations) == 1:
        (source,), (destination,) = sources, destinations
        both_ways = " <-> " if of[0].both_ways else " -> "
        return source if source == destination else f"{source}{both_ways}{destination}"
    if sources == destinations and len(sources) == 2:
        return " <-> ".join(next(iter(ways)))
    if len(destinations) == 1:
        return f"others -> {destinations.pop()}"
    return f"{sources.pop()} -> others" if len(sources) == 1 else str(cell.place)


def place_of(sheet: _Laid, cell: Placed) -> str:
    """The name that people use for a cell in its table: its ends, or its row and column if these
    are settings."""
    return str(cell.place) if sheet.sweep else ends_of(cell)


def spoken(sheet: _Laid, cell: Placed) -> str:
    """The cell's name with its benchmark: `host_to_device_memcpy_ce host:0 -> cuda:3`."""
    return f"{sheet.benchmark} {place_of(sheet, cell)}"


def numbered(sheets: Iterable[_Sheet]) -> Iterator[tuple[_Sheet, SheetId, int]]:
    """Yields each table with its identity and the number of identical ones before it, since a
    benchmark may be measured several times."""
    seen = Counter[SheetId]()
    for sheet in sheets:
        of = sheet_id(sheet)
        yield sheet, of, seen[of]
        seen[of] += 1

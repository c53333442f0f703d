"""The identity of a cell (one entry of a benchmark's table) in plans, results and reports."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from operator import attrgetter
from typing import NamedTuple, Protocol, TypeVar

import msgspec

from linkgauge.model.shareable import OwnName, PlaceName

from .transfer import Cell, Place, Placed


class TableId(NamedTuple):
    benchmark: str
    backend: str
    size: int

    def cell(self, place: tuple[str, str], repeat: int = 0) -> CellId:
        return CellId(*self, *place, repeat)


class CellId(msgspec.Struct, frozen=True, order=True, gc=False, omit_defaults=True):
    """Identifies a cell in a plan, in a journal and across runs.

    benchmark: The benchmark's name.
    backend: The backend that measured the cell.
    size: The size in bytes at which the cell's table is measured.
    row: The label of the cell's row.
    column: The label of the cell's column.
    repeat: How many earlier tables of the run have the same benchmark, backend and size."""

    benchmark: OwnName
    backend: OwnName
    size: int
    row: PlaceName
    column: PlaceName
    repeat: int = 0

    @property
    def place(self) -> Place:
        return Place(self.row, self.column)

    @property
    def table(self) -> TableId:
        return TableId(self.benchmark, self.backend, self.size)

    @property
    def id(self) -> CellId:
        """This identity as a plain CellId, without the fields that a subclass adds."""
        return CellId(self.benchmark, self.backend, self.size, self.row, self.column, self.repeat)

    @property
    def name(self) -> str:
        return f"{self.benchmark} [{self.row}, {self.column}]"

    def __str__(self) -> str:
        return f"{self.benchmark} {self.place}"


class _OfTable(Protocol):
    @property
    def benchmark(self) -> str: ...
    @property
    def backend(self) -> str: ...
    @property
    def size(self) -> int: ...
    @property
    def sweep(self) -> bool: ...


_Table = TypeVar("_Table", bound=_OfTable)


def table_id(of: _OfTable) -> TableId:
    return TableId(of.benchmark, of.backend, of.size)


def bytes_of(cell: Cell, size: int) -> int | None:
    """Returns a cell's size in bytes at the base size `size`; None if the operation has no size."""
    does = cell.does
    if does.of_sizes:
        return cell.transfers[0].bytes_moved(size)
    return (size or None) if does.has_size else None


def cell_id(table: _OfTable, cell: Placed) -> CellId:
    """Returns a cell's identity with `repeat` 0, for a table that occurs only once in its run."""
    return table_id(table).cell(cell.place)


def ends_of(cell: Placed) -> str:
    """Returns where a cell's bytes come from and go to, as `host:0 -> cuda:3`, or `others ->
    cuda:3` if they have several sources; if neither end is shared, the cell's row and column."""
    of = cell.transfers[:1] if cell.report.is_first else cell.transfers
    ways = dict.fromkeys(map(attrgetter("way"), of))
    sources, destinations = map(set, zip(*ways, strict=True)) if ways else (set(), set())
    if len(sources) == len(destinations) == 1:
        (source,), (destination,) = sources, destinations
        both_ways = " <-> " if of[0].both_ways else " -> "
        return source if source == destination else f"{source}{both_ways}{destination}"
    if sources == destinations and len(sources) == 2:
        return " <-> ".join(next(iter(ways)))
    if len(destinations) == 1:
        return f"others -> {destinations.pop()}"
    return f"{sources.pop()} -> others" if len(sources) == 1 else str(cell.place)


def place_of(table: _OfTable, cell: Placed) -> str:
    """Returns a cell's row and column if its table is a sweep, else the memories at its ends."""
    return str(cell.place) if table.sweep else ends_of(cell)


def spoken(table: _OfTable, cell: Placed) -> str:
    return f"{table.benchmark} {place_of(table, cell)}"


def numbered(tables: Iterable[_Table]) -> Iterator[tuple[_Table, TableId, int]]:
    """Yields each table, its identity, and how many earlier tables have the same identity."""
    seen = Counter[TableId]()
    for table in tables:
        of = table_id(table)
        yield table, of, seen[of]
        seen[of] += 1

"""Which cell: the one form of a cell's identity, from the plan to the pages."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import NamedTuple, Protocol, TypeVar

import msgspec

from .transfer import Place, Placed


class SheetId(NamedTuple):
    """What the cells of a sheet share: a benchmark on one backend at one size (in bytes)."""

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
        """Without what a kind of cell adds."""
        return self.sheet.cell(self.place, self.repeat)

    @property
    def name(self) -> str:
        """`benchmark [row, column]`."""
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
    """That of a sheet, a result, or one of its cells."""
    return SheetId(of.benchmark, of.backend, of.size)


def cell_id(sheet: _OfSheet, cell: _AtPlace) -> CellId:
    """That of a cell in a sheet of which there is no other."""
    return sheet_id(sheet).cell(cell.place)


def place_of(sheet: _Laid, cell: Placed) -> str:
    """What people call a cell of a sheet: its ends, or its row and column if these are settings."""
    return str(cell.place) if sheet.sweep else cell.ends


def spoken(sheet: _Laid, cell: Placed) -> str:
    """With its benchmark: `host_to_device_memcpy_ce host:0 -> cuda:3`."""
    return f"{sheet.benchmark} {place_of(sheet, cell)}"


def numbered(sheets: Iterable[_Sheet]) -> Iterator[tuple[_Sheet, SheetId, int]]:
    """Each sheet, with how many before it are identical: a test may be measured several times."""
    seen = Counter[SheetId]()
    for sheet in sheets:
        of = sheet_id(sheet)
        yield sheet, of, seen[of]
        seen[of] += 1

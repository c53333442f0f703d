"""The sizes that cells have of their own, and names that tell results apart."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from linkgauge.model.result import PlannedSheet, Result, Sheet
from linkgauge.model.transfer import Cell
from linkgauge.model.units import format_size

_UNIT = 1
"""The size of a result whose cells have sizes of their own, or none."""


def has_own_size(cell: Cell) -> bool:
    """Whether it is a point of a curve over sizes."""
    return cell.does.of_sizes


def size_of(result: Sheet, cell: Cell) -> int | None:
    """The bytes that a cell is of; None of work that is in no memory."""
    if has_own_size(cell):
        return cell.transfers[0].bytes_moved(result.size)
    return (result.size or None) if cell.does.has_size else None


def size_without_cells(result: Sheet) -> int | None:
    """Of a result that was skipped as a whole; None if its cells have sizes of their own."""
    return result.size if result.size > _UNIT else None


def sizes_of(result: Result | PlannedSheet) -> tuple[int, ...]:
    """The sizes of its cells, the least first."""
    if not result.cells:
        return () if (size := size_without_cells(result)) is None else (size,)
    known = {size_of(result, cell) for cell in result.cells}
    return tuple(sorted(size for size in known if size is not None))


def size_ends(result: Result | PlannedSheet) -> str:
    """`8 B to 512 MiB`; empty without any."""
    sizes = sizes_of(result)
    return " to ".join(map(format_size, dict.fromkeys((sizes[0], sizes[-1])))) if sizes else ""


def names_of(results: Sequence[Result]) -> list[str]:
    """A name for each. Those of one benchmark on one backend that have the same sizes have the name
    of their only row behind it, which says of how many devices a collective is, else a number."""
    alike = [(one.benchmark, one.backend, sizes_of(one)) for one in results]
    rows = [_only_row(one) for one in results]
    counts, named = Counter(alike), Counter(zip(alike, rows, strict=True))
    seen: Counter[object] = Counter()
    names = []
    for result, same, row in zip(results, alike, rows, strict=True):
        seen[same] += 1
        if counts[same] == 1:
            names.append(result.benchmark)
        elif row is not None and named[same, row] == 1:
            names.append(f"{result.benchmark} {row}")
        else:
            names.append(f"{result.benchmark} ({seen[same]})")
    return names


def _only_row(result: Result) -> str | None:
    rows = {cell.row for cell in result.cells}
    return next(iter(rows)) if len(rows) == 1 else None

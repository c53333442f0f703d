"""Groups changed cells that share properties, if most changed by about the same ratio."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from statistics import median

import msgspec

from linkgauge.model.stats.changes import ChangedTo
from linkgauge.model.units import Better

from .likeness import CellFigure

MOST = 10
"""The most groups that are named."""
_PART = 0.8
"""The least share of a group's cells that must have changed in the same direction."""
_EQUIVALENT = 2.0
"""The factor by which a change may differ from the group's median change (in logarithms)."""


class Shared(msgspec.Struct, frozen=True, kw_only=True):
    """The properties that a group of cells shares. A field is null if the cells differ in it, or if
    it adds nothing.

    benchmark: The benchmark's name.
    device: A device that takes part.
    size: The size in bytes.
    row: The label of their row.
    column: The label of their column."""

    benchmark: str | None = None
    device: str | None = None
    size: int | None = None
    row: str | None = None
    column: str | None = None

    @property
    def is_one_place(self) -> bool:
        return self.row is not None and self.column is not None


class Changed(msgspec.Struct, frozen=True, kw_only=True):
    """A group of cells that changed by about the same ratio, and the properties that they share.

    side: The name of the side that differs from the first side.
    direction: Whether the cells got better or worse.
    ratio: The median ratio of the side's figure to the first side's.
    least: The ratio of the cell that changed the least.
    most: The ratio of the cell that changed the most.
    cells: The number of cells.
    of: The number of cells with these properties, changed or not.
    shared: The properties that they share."""

    side: str
    direction: ChangedTo
    ratio: float
    least: float
    most: float
    cells: int
    of: int
    shared: Shared


Moved = tuple[ChangedTo, float]
"""The direction and the ratio of a change."""
_Of = tuple[Better, Shared]
_Key = tuple[ChangedTo, _Of]


def grouped(
    side: str, cells: Sequence[CellFigure], changes: Sequence[Moved | None]
) -> Iterator[Changed]:
    """Yields groups of changed cells, the largest first, at most `MOST`. `changes` has None for a
    cell that did not change."""
    if not any(changes):
        return
    of, left = _candidates(cells, changes)
    for _ in range(MOST):
        equivalent = {key: _equivalent(own) for key, own in left.items() if own}
        if not equivalent:
            return
        key = max(equivalent, key=lambda key: _weight(key[1][1], equivalent[key]))
        (direction, common), logs = key, sorted(equivalent[key].values(), key=abs)
        yield Changed(
            side=side,
            direction=direction,
            ratio=math.exp(median(logs)),
            least=math.exp(logs[0]),
            most=math.exp(logs[-1]),
            cells=len(logs),
            of=of[common],
            shared=common[1],
        )
        left = {
            other: {number: log for number, log in own.items() if number not in equivalent[key]}
            for other, own in left.items()
        }


def _candidates(
    cells: Sequence[CellFigure], changes: Sequence[Moved | None]
) -> tuple[Mapping[_Of, int], dict[_Key, dict[int, float]]]:
    of = Counter[_Of]()
    changed: dict[_Key, dict[int, float]] = {}
    for number, (cell, change) in enumerate(zip(cells, changes, strict=True)):
        for shared in _what_is_shared(cell):
            common = cell.better, shared
            of[common] += 1
            if change is not None:
                direction, ratio = change
                changed.setdefault((direction, common), {})[number] = math.log(ratio)
    return of, {
        (direction, common): own
        for (direction, common), own in changed.items()
        if len(own) >= _PART * of[common] and (of[common] > 1 or common[1].is_one_place)
    }


def _weight(shared: Shared, logs: Mapping[int, float]) -> tuple[int, int, float]:
    facts = sum(value is not None for value in msgspec.structs.astuple(shared))
    return len(logs), -facts, max(map(abs, logs.values()))


def _what_is_shared(cell: CellFigure) -> Iterator[Shared]:
    # A size of its own is in the name of the row or the column.
    sizes = dict.fromkeys((None, cell.size if cell.size == cell.bytes else None))
    for benchmark, size, device in product((None, cell.benchmark), sizes, (None, *cell.devices)):
        yield Shared(benchmark=benchmark, device=device, size=size)
    for size in sizes:
        yield Shared(benchmark=cell.benchmark, size=size, row=cell.row)
        yield Shared(benchmark=cell.benchmark, size=size, column=cell.column)
        yield Shared(benchmark=cell.benchmark, size=size, row=cell.row, column=cell.column)


def _equivalent(logs: Mapping[int, float]) -> dict[int, float]:
    middle = abs(median(logs.values()))
    return {
        n: log
        for n, log in logs.items()
        if middle / _EQUIVALENT <= abs(log) <= middle * _EQUIVALENT
    }

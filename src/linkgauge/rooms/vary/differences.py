"""Compares settings by the runs of their rounds."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from msgspec.structs import asdict, replace

from linkgauge.model.cell_id import CellId, SheetId, sheet_id
from linkgauge.model.machine import Node
from linkgauge.model.result import CellResult, Result
from linkgauge.model.stats.changes import Direction, changed_to, holm
from linkgauge.model.stats.ranks import Change, change
from linkgauge.model.transfer import Place
from linkgauge.model.units import Better
from linkgauge.model.variation import Compared, VariedCell

from .rounds import Taken

ALL = "all threads"
"""The column of a cell that uses every CPU that its setting has."""


class _Found(NamedTuple):
    result: Result
    cell: CellResult


_Cells = dict[Place, list[list[_Found | None]]]
"""By setting and round."""


def compare(runs: Sequence[Taken], settings: int, significance: float) -> tuple[VariedCell, ...]:
    """Every cell, under so many settings. Each is compared with the first one by itself, with the
    given significance; Holm's p is adjusted for all that are compared."""
    return _adjusted([
        _varied(sheet.cell(place), table, significance)
        for sheet, cells in _sheets(runs, settings).items()
        for place, table in _apart(cells).items()
    ])  # fmt: skip


def _adjusted(cells: Sequence[VariedCell]) -> tuple[VariedCell, ...]:
    adjusted = iter(holm([one.change.p for c in cells for one in c.settings if one.change]))

    def compared(one: Compared) -> Compared:
        if one.change is None:
            return one
        return replace(one, change=replace(one.change, holm=next(adjusted)))

    return tuple(replace(cell, settings=tuple(map(compared, cell.settings))) for cell in cells)


def can_compare(runs: Sequence[Taken], settings: int) -> bool:
    """Whether further rounds may find any difference: not if no cell has figures, or may yet have
    them, under the first setting and another one. What is skipped once is skipped always."""
    for cells in _sheets(runs, settings).values():
        for first, *others in cells.values():
            if _is_able(first) and any(map(_is_able, others)):
                return True
    return False


def _is_able(own: Sequence[_Found | None]) -> bool:
    return any(found is not None and found.cell.status != "skip" for found in own)


def _sheets(runs: Sequence[Taken], settings: int) -> dict[SheetId, _Cells]:
    """Without a run that was interrupted, which may lack cells, or samples of them."""
    whole = [one for one in runs if one.kept.finished]
    rounds = max((one.kept.round for one in whole), default=-1) + 1
    sheets: dict[SheetId, _Cells] = {}
    whole.sort(key=lambda one: (one.kept.setting, one.kept.round))  # the first setting's order
    for kept, run, _ in whole:
        for result in run.results:
            cells = sheets.setdefault(sheet_id(result), {})
            for place, cell in _places(result, run.machine.host.nodes):
                table = cells.setdefault(place, [[None] * rounds for _ in range(settings)])
                table[kept.setting][kept.round] = _Found(result, cell)
    return sheets


def _places(result: Result, nodes: Sequence[Node]) -> Iterator[tuple[Place, CellResult]]:
    """Each cell at its place; those of all threads also at one that does not count them."""
    cpus = {node.index: len(node.cpus) for node in nodes}
    for cell in result.cells:
        yield cell.place, cell
        if result.sweep and _uses_all(cell, cpus):
            yield Place(cell.row, ALL), cell


def _uses_all(cell: CellResult, cpus: Mapping[int, int]) -> bool:
    """Whether the column is the number of threads, and every CPU of their nodes has one."""
    engines = [transfer.engine for transfer in cell.transfers if transfer.engine.kind == "cpu"]
    there = [cpus.get(engine.owner.index or 0, 0) for engine in engines]
    threads = [engine.count or has for engine, has in zip(engines, there, strict=True)]
    return bool(engines) and threads == there and cell.column == str(sum(threads))


def _apart(cells: _Cells) -> _Cells:
    """The cells, each once. Where all settings have as many threads, a cell of all threads keeps
    their number; else it is `ALL`, and a number that some setting lacks is left out."""
    every = {place: _columns(table) for place, table in cells.items() if place.column == ALL}
    left_out = set()
    for place, columns in every.items():
        if len(columns) == 1:
            left_out.add(place)
            continue
        counted = (Place(place.row, column) for column in columns)
        left_out |= {one for one in counted if not all(map(any, cells.get(one, ())))}
    return {place: table for place, table in cells.items() if place not in left_out}


def _columns(table: Sequence[Sequence[_Found | None]]) -> set[str]:
    return {found.cell.column for own in table for found in own if found is not None}


def _varied(
    cell: CellId, table: Sequence[Sequence[_Found | None]], significance: float
) -> VariedCell:
    result = next(found.result for own in table for found in own if found is not None)
    figures = [[_figure(found) for found in own] for own in table]
    return VariedCell(
        **asdict(cell),
        title=result.title,
        unit=result.unit,
        better=result.better,
        settings=tuple(
            _compared(figures[0] if number else None, own, result.better, significance, found)
            for number, (own, found) in enumerate(zip(figures, table, strict=True))
        ),
    )


def _figure(found: _Found | None) -> float | None:
    if found is None or found.cell.status != "pass" or found.cell.summary is None:
        return None
    return found.cell.summary.median


def _compared(
    base: Sequence[float | None] | None,
    own: Sequence[float | None],
    better: Better,
    significance: float,
    found: Sequence[_Found | None],
) -> Compared:
    """`base` are the figures of the first setting; None of that itself."""
    known = [figure for figure in own if figure is not None]
    pairs = [
        (first, second)
        for first, second in zip(base or (), own, strict=base is not None)
        if first is not None and second is not None
    ]
    changed = change(pairs, significance)
    return Compared(
        figures=tuple(own),
        median=statistics.median(known) if known else None,
        change=changed,
        direction=_direction(changed, better),
        reason=None if len(known) == len(own) else _why(found),
    )


def _direction(changed: Change | None, better: Better) -> Direction:
    if changed is None or not changed.is_known:
        return "unknown"
    if not changed.is_proven:
        return "same"
    return changed_to(changed.ratio, better)


def _why(found: Sequence[_Found | None]) -> str | None:
    """Why figures are missing: the first reason of a cell without one."""
    cells = [one.cell for one in found if one is not None]
    if not cells:
        return "no such cell"
    without = (cell for cell in cells if cell.status != "pass")
    return next((f"{cell.status}: {cell.reason}" for cell in without), None)

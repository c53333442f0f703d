"""Compares settings by the figures of their rounds."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from linkgauge.judge.compare.likeness import CellFigure, RunFigures, figures_of
from linkgauge.judge.compare.side_tests import Key, SideFigures, Sides, key_of, table_of
from linkgauge.model.by_name import by_name
from linkgauge.model.documents.result import CellResult, Run
from linkgauge.model.documents.variation import Compared, VariedCell
from linkgauge.model.stats.changes import Direction, changed_to
from linkgauge.model.stats.ranks import Change, changes
from linkgauge.model.units import Better

from .rounds import RoundRun

ALL = "all threads"
"""The column of a cell that uses every CPU of its setting."""
_Own = Sequence[CellFigure | None]
"""The figures of a cell under one setting, by round."""


def compare(runs: Sequence[RoundRun], settings: int, significance: float) -> tuple[VariedCell, ...]:
    """Returns every cell with its figures under all settings. Each setting is compared with the
    first, at the given significance. Holm's method accounts for the number of comparisons."""
    titles = {result.benchmark: result.title for one in runs for result in one.run.results}
    cells = _cells(runs, settings)
    pairs = [_pairs(own[0], each) for own in cells for each in own[1:]]
    changed = iter(changes(pairs, significance))
    varied = []
    for own in cells:
        one = next(found for each in own for found in each if found is not None)
        found = [None, *(next(changed) for _ in own[1:])]
        under = (_compared(each, of, one.better) for each, of in zip(own, found, strict=True))
        varied.append(by_name(VariedCell, one, title=titles[one.benchmark], settings=tuple(under)))
    return tuple(varied)


def can_compare(runs: Sequence[RoundRun], settings: int) -> bool:
    """Whether further rounds may find a difference. For that, at least one cell must be able to get
    figures under the first setting and under another. A cell that was skipped once is always
    skipped."""
    for own in _cells(runs, settings):
        first, *others = (any(one and one.status != "skip" for one in each) for each in own)
        if first and any(others):
            return True
    return False


def _cells(runs: Sequence[RoundRun], settings: int) -> list[list[_Own]]:
    """Returns the figures of each cell, by setting and round. An interrupted run is left out,
    because cells or samples may be missing."""
    threads: dict[Key, set[str]] = {}
    sides: list[list[RunFigures]] = [[] for _ in range(settings)]
    for kept, run, _ in sorted(runs, key=lambda one: one.kept.round):
        if kept.finished:
            sides[kept.setting].append(_with_all(run, threads))
    begins = [sum(map(len, sides[:number])) for number in range(settings)]
    table = _apart(table_of(Sides([""] * settings, sides)), threads)
    sheets = list(dict.fromkeys(of.sheet for of, *_ in table))
    return [
        [
            [own.get(begin + number) for number in range(max(map(len, sides)))]
            for begin, own in zip(begins, table[key].sides, strict=True)
        ]
        for key in sorted(table, key=lambda key: sheets.index(key[0].sheet))
    ]


def _with_all(run: Run, threads: dict[Key, set[str]]) -> RunFigures:
    """Returns the figures of a run. A cell that uses all threads appears a second time, in the
    column `ALL`. Its number of threads is recorded in `threads`."""
    found = figures_of(run)
    cpus = {node.index: len(node.cpus) for node in run.machine.host.nodes}
    every = [(result, cell) for result in run.results for cell in result.cells]
    cells = list[CellFigure]()
    for (result, cell), figure in zip(every, found.cells, strict=True):
        cells.append(figure)
        if result.sweep and _uses_all(cell, cpus):
            cells.append(replace(figure, column=ALL))
            threads.setdefault(key_of(cells[-1]), set()).add(figure.column)
    return replace(found, cells=tuple(cells))


def _uses_all(cell: CellResult, cpus: Mapping[int, int]) -> bool:
    """Whether the column is a number of threads, and each CPU of the nodes has a thread."""
    engines = [transfer.engine for transfer in cell.transfers if transfer.engine.kind == "cpu"]
    there = [cpus.get(engine.owner.index or 0, 0) for engine in engines]
    threads = [engine.count or has for engine, has in zip(engines, there, strict=True)]
    return bool(engines) and threads == there and cell.column == str(sum(threads))


def _apart(
    table: dict[Key, SideFigures], threads: Mapping[Key, set[str]]
) -> dict[Key, SideFigures]:
    """Returns the table without duplicates. A cell that uses all threads appears twice: by its
    number of threads, and as `ALL`. If this number is the same under all settings, `ALL` is
    removed. Otherwise, numbers that some setting lacks are removed."""
    left_out = set[Key]()
    for key, columns in threads.items():
        if len(columns) == 1:
            left_out.add(key)
            continue
        counted = ((replace(key[0], column=column), *key[1:]) for column in columns)
        left_out |= {one for one in counted if one not in table or not all(table[one].sides)}
    return {key: found for key, found in table.items() if key not in left_out}


def _pairs(base: _Own, own: _Own) -> list[tuple[float, float]]:
    """Returns pairs of figures, one pair for each round in which both settings have a figure."""
    return [
        (first.figure, second.figure)
        for first, second in zip(base, own, strict=True)
        if first is not None and second is not None and first.figure and second.figure
    ]


def _compared(own: _Own, changed: Change | None, better: Better) -> Compared:
    figures = tuple(None if found is None else found.figure for found in own)
    known = [figure for figure in figures if figure is not None]
    direction: Direction = "unknown"
    if changed is not None and changed.is_known:
        direction = changed_to(changed.ratio, better) if changed.is_proven else "same"
    reason = None if any(own) else "no such cell"
    without = (f"{one.status}: {one.reason}" for one in own if one and one.status != "pass")
    middle = statistics.median(known) if known else None
    return Compared(figures, middle, changed, direction, reason or next(without, None))

"""Shows all benchmarks in a table, sortable by a click, with figures and their share of the
expected figure."""

from __future__ import annotations

from collections.abc import Iterator

from linkgauge.model.documents.result import Result
from linkgauge.model.units import unit_of
from linkgauge.report.blocks import Block, Column, Entry, Table, plain
from linkgauge.report.results import (
    degraded_note,
    ends,
    label,
    names_of,
    share,
    size_ends,
    sizes_of,
    verdict,
    without_empty,
)
from linkgauge.report.shading import utilised

from . import OneRun, Section
from .figures import anchors

_HEADS = (
    Column("benchmark"), Column("verdict"), Column("of expected", True), Column("on"),
    Column("size", True), Column("cells", True), Column("least", True), Column("median", True),
    Column("most", True), Column("unit"), Column("of theoretical", True),
)  # fmt: skip


def _blocks(one: OneRun) -> Iterator[Block]:
    found = list(anchors(one))
    names = names_of([result for _, result in found])
    rows = [_row(result, name, anchor) for (anchor, result), name in zip(found, names, strict=True)]
    if rows:
        said = ["Of expected: the worst cell that is judged. Click a name for all cells"]
        note = degraded_note(cell for result in one.run.results for cell in result.cells)
        caption = ". ".join([*said, note] if note else said)
        yield without_empty(Table(plain(caption), _HEADS, rows, sortable=True))


def _row(result: Result, name: str, anchor: str) -> tuple[Entry, ...]:
    cells = [cell for cell in result.cells if cell.headline is not None]
    figures = [cell.headline or 0.0 for cell in cells]
    shares = [cell.reached for cell in cells]
    used = [utilised(cell) for cell in cells]
    return (
        Entry(label(name), link=anchor),
        verdict([result], cells),
        share(min((one for one in shares if one is not None), default=None)),
        Entry(label(result.backend)),
        Entry(size_ends(result), max(sizes_of(result), default=None)),
        Entry(f"{len(cells):,}", len(cells)),
        *ends(figures, result.unit),
        Entry(unit_of(result.unit).shown),
        share(min((one for one in used if one is not None), default=None)),
    )


SECTION = Section("benchmarks", "Benchmarks", 20, of_run=_blocks)

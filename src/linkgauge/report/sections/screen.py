"""Shows a line for each benchmark: on pages, and on a terminal if not all figures fit."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import chain
from operator import attrgetter
from statistics import median
from typing import NamedTuple

from linkgauge.model.cell_id import place_of
from linkgauge.model.documents.result import CellResult, Result, Run
from linkgauge.model.names import range_of
from linkgauge.model.operations.busbw import bandwidths
from linkgauge.model.units import BANDWIDTH, COLLECTIVE, format_figure, format_size, unit_of
from linkgauge.report.blocks import (
    Block,
    ChartFigure,
    Column,
    Entry,
    Heat,
    Prose,
    Shade,
    Span,
    Table,
    line,
    plain,
)
from linkgauge.report.forms import (
    UNIFORM,
    cells_of,
    form_of,
    has_figures,
    legend,
    peers_sign,
    sign_of,
    utilised,
)
from linkgauge.report.results import (
    Family,
    degraded_note,
    ends,
    families_of,
    label,
    least_share,
    mark,
    names_of,
    size_ends,
    size_without_cells,
    sizes_of,
    usual_size,
    verdict,
    without_empty,
)
from linkgauge.report.words.comparison import compared, may_be_cached
from linkgauge.report.words.expectations import is_judged, word_of
from linkgauge.report.words.remarks import complaint_lines, round_lines
from linkgauge.report.words.sentences import first_of
from linkgauge.report.words.worst import BROKEN

from . import OneRun, Section, figures
from .figures import anchors

MOST_LINES = 24
FEW = 4
MOST_ROWS = 22
"""With more, benchmarks that do the same in several ways share a line."""
MOST_FAMILIES = 26
"""With more, those are shown whose figures mean the most."""
MATRIX = "--matrix adds columns: percentiles, what is expected"
MORE = "--all shows every figure, --matrix shows what is expected, -v shows what was left out"
_MUCH_THE_SAME = 1.2
"""Of shares that differ by no more, only the first is shown."""
_HEADS = (
    Column("benchmark"), Column("median", True), Column("", True, 4), Column("least", True, 4),
    Column("", True, 5), Column("most", True, 6), Column("", True, 6), Column("unit", rank=3),
    Column("size", True, 9), Column("of expected", True, 8), Column("verdict", rank=1, short=" "),
    Column("where", rank=7),
)  # fmt: skip
"""A column without a name has the figures of the second engine."""


def blocks(run: Run) -> Iterator[Block]:
    whole = _whole(run)
    if whole is None:
        results = [one for one in run.results if has_figures(one)]
        yield _table(results)
        yield from _standing_out(run, results)
        return
    yield from whole
    if any(cell.expected for one, cell in cells_of(run.results) if one.benchmark != "copy"):
        yield Prose([(), plain(MATRIX, "dim")])
    if said := compared(run):
        yield Prose([(), *map(plain, filter(None, (said, may_be_cached(run))))])


def has_few(run: Run, few: int = FEW) -> bool:
    return len(set(map(attrgetter("benchmark"), filter(has_figures, run.results)))) <= few


def _whole(run: Run) -> list[Block] | None:
    if not has_few(run, MOST_LINES):
        return None  # each takes a line
    found, height, few = list[Block](), 0, has_few(run)
    for block in figures.blocks(run):
        found.append(block)
        height += 0 if few else _height(block)
        if height > MOST_LINES:
            return None
    return found


def _height(block: Block) -> int:
    match block:
        case Table():
            return 2 + min(len(block.rows), block.few or len(block.rows)) + len(block.lines)
        case Heat():
            return 4 + len(block.rows) + len(block.lines)
        case ChartFigure() | Prose():
            return len(block.lines)
        case _:
            return 1


class _ScreenFigure(NamedTuple):
    figure: float
    word: str
    result: Result
    cell: CellResult

    @property
    def name(self) -> str:
        return f"{self.word} {place_of(self.result, self.cell)}".strip()


def _table(results: Sequence[Result]) -> Table:
    usual = usual_size(results)
    each = list(families_of(results, folded=False))
    each = list(families_of(results)) if len(each) > MOST_ROWS else each
    shown = set(sorted(range(len(each)), key=lambda at: _rank(each[at]))[:MOST_FAMILIES])
    rows = [_row(family, usual) for at, family in enumerate(each) if at in shown]
    caption = line(Span(format_size(usual), "strong"), mark(results[0].simulated))
    broken = [one for one in results if any(cell.status in BROKEN for cell in one.cells)]
    signs = legend(Shade("", sign=sign_of(cell)) for _, cell in cells_of(results))
    left = f"and {len(each) - len(shown)} more lines; " if len(each) > len(shown) else ""
    lines = [*complaint_lines(broken)]
    lines += chain.from_iterable(map(round_lines, results))
    lines += [*([signs] if signs else []), plain(f"{left}{MORE}", "dim")]
    rank = 2 if signs else 4  # if a cell stands out, the least matters more than the unit
    heads = [head._replace(rank=rank) if head.name == "least" else head for head in _HEADS]
    return without_empty(Table(caption, heads, rows, lines=lines))


def _rank(family: Family) -> tuple[bool, bool, bool]:
    cells = [cell for _, cell in cells_of(family.results)]
    odd = any(cell.status in BROKEN or sign_of(cell) for cell in cells)
    return not odd, family.is_range, not any(map(is_judged, cells))


def _row(family: Family, usual: int) -> tuple[Entry, ...]:
    known = [_known(*each) for each in zip(family.words, family.results, strict=True)]
    size = max(size_without_cells(one) or 0 for one in family.results)
    cells = [cell for _, cell in cells_of(family.results)]
    return (
        Entry(label(family.name)),
        *map(Entry, _figures(family, known)),
        Entry(_unit(family)),
        Entry(format_size(size) if size not in (usual, 0) else ""),
        least_share(cell.reached for cell in cells),
        _verdict(family.results, cells),
        Entry(_where(family, known), tone="dim"),
    )


def _known(word: str, result: Result) -> list[_ScreenFigure]:
    known = ((cell, bandwidths(cell)) for cell in result.cells)
    figures = ((cell, cell.headline if own is None else own.bus) for cell, own in known)
    found = (_ScreenFigure(each, word, result, cell) for cell, each in figures if each is not None)
    return sorted(found, key=lambda one: one.figure)


def _figures(family: Family, known: Sequence[Sequence[_ScreenFigure]]) -> Sequence[str]:
    alone = ("",) * 5
    if family.results[0].unit == COLLECTIVE.symbol:
        most = max(one.figure for own in known for one in own)
        return (format_figure(most, BANDWIDTH.symbol), *alone)
    unit = family.results[0].unit
    figures = [[one.figure for one in own] for own in known]
    if family.is_range:
        every = [one for own in figures for one in own]
        return (range_of(partial(format_figure, unit=unit), every, "–"), *alone)
    shown = (median, min, max) if any(len(own) > 1 for own in figures) else (median,)
    each = [*figures, []][:2]
    found = [format_figure(of(own), unit) if own else "" for of in shown for own in each]
    return (*found, *alone)[:6]


def _unit(family: Family) -> str:
    unit = unit_of(family.results[0].unit)
    return f"{BANDWIDTH.shown} busbw" if unit == COLLECTIVE else unit.shown


def _verdict(results: Sequence[Result], cells: Sequence[CellResult]) -> Entry:
    word = word_of(results, cells)
    if word is None:
        return Entry("")
    if word.kind != "part":
        return verdict(results, cells)
    passed = [cell for cell in cells if cell.status == "pass"]
    if signs := "".join(sorted(set(map(peers_sign, cells)))):
        return Entry(signs, tone="warn")
    return Entry(f"{sum(map(is_judged, passed))}/{len(passed)} ok", tone="good")


def _where(family: Family, known: Sequence[Sequence[_ScreenFigure]]) -> str:
    odd = [
        one.name
        for own in known
        for one in own
        if sign_of(one.cell) and one.cell.verdict != "degraded"
    ]
    if odd:
        return first_of(odd, most=1)
    if family.is_range and any(len(own) > 1 for own in known):
        every = sorted((one for own in known for one in own), key=lambda one: one.figure)
        return " to ".join(dict.fromkeys((every[0].name, every[-1].name)))
    far = [own[0] for own in known if own[-1].figure - own[0].figure > UNIFORM * own[0].figure]
    return f"least {far[0].name}" if far else ""


def _standing_out(run: Run, results: Sequence[Result]) -> Iterator[Block]:
    odd = [
        (cell.reached or 0.0, result)
        for result in results
        if form_of(result, "summary") in ("matrix", "columns")
        for cell in result.cells
        if cell.status in BROKEN or sign_of(cell)
    ]
    if odd:
        least = min(share for share, _ in odd)
        result = next(result for share, result in odd if share <= _MUCH_THE_SAME * least)
        form = form_of(result, "summary")
        yield from figures.blocks_of(figures.ResultView(form, [result], run))


_PAGE_HEADS = (
    Column("benchmark"), Column("verdict"), Column("of expected", True), Column("on"),
    Column("size", True), Column("cells", True), Column("least", True), Column("median", True),
    Column("most", True), Column("unit"), Column("of theoretical", True),
)  # fmt: skip


def _blocks(one: OneRun) -> Iterator[Block]:
    found = list(anchors(one))
    names = names_of([result for _, result in found])
    rows = [_page_row(*each, name) for each, name in zip(found, names, strict=True)]
    if rows:
        said = "The column `of expected` shows the worst judged cell. Click a name for all cells"
        note = degraded_note(cell for _, cell in cells_of(one.run.results))
        caption = ". ".join(filter(None, (said, note)))
        yield without_empty(Table(plain(caption), _PAGE_HEADS, rows, sortable=True))


def _page_row(anchor: str, result: Result, name: str) -> tuple[Entry, ...]:
    cells = [cell for cell in result.cells if cell.headline is not None]
    figures = [cell.headline or 0.0 for cell in cells]
    return (
        Entry(label(name), link=anchor),
        verdict([result], cells),
        least_share(cell.reached for cell in cells),
        Entry(label(result.backend)),
        Entry(size_ends(result), max(sizes_of(result), default=None)),
        Entry(f"{len(cells):,}", len(cells)),
        *ends(figures, result.unit),
        Entry(unit_of(result.unit).shown),
        least_share(map(utilised, cells)),
    )


SECTION = Section("benchmarks", "Benchmarks", 20, of_run=_blocks)

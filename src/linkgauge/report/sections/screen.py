"""The figures that a terminal shows first: all if they fit a screen, else a line for each
benchmark, and one matrix in which something stands out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain
from statistics import median
from typing import NamedTuple

from linkgauge.model.cell_id import place_of
from linkgauge.model.documents.result import CellResult, Result, Run
from linkgauge.model.operations.busbw import bandwidths
from linkgauge.model.units import BANDWIDTH, COLLECTIVE, format_size, unit_of
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
from linkgauge.report.forms import UNIFORM, SharedTable, cells_of, form_of, has_figures
from linkgauge.report.matrix import brief
from linkgauge.report.results import (
    Family,
    families_of,
    label,
    mark,
    share,
    size_without_cells,
    usual_size,
    without_empty,
)
from linkgauge.report.results import verdict as verdict_of
from linkgauge.report.shading import legend, share_shown, sign_of
from linkgauge.report.words.expectations import HELD, is_judged, word_of
from linkgauge.report.words.remarks import complaint_lines, round_lines
from linkgauge.report.words.worst import BROKEN

from . import figures

MOST_LINES = 24
"""The most lines of figures that are shown whole."""
FEW = 4
"""The most benchmarks that are shown whole."""
MOST_ROWS = 22
"""The most benchmarks with a line each; of more, those that do the same in several ways share a
line."""
MOST_FAMILIES = 26
"""The most lines for such families; of more, the screen shows those whose figures mean the most."""
MATRIX = "--matrix shows percentiles and what is expected"
MORE = "--all shows every figure, --matrix also percentiles and what is expected"
_MUCH_THE_SAME = 1.2
"""The relative difference up to which shares of expected figures are much the same; only the first
one is then shown."""
_HEADS = (
    Column("benchmark"), Column("median", True), Column("least", True, 3), Column("most", True, 4),
    Column("unit"), Column("size", True, 7), Column("of expected", True, 6),
    Column("verdict", rank=1, short=" "), Column("where", rank=5),
)  # fmt: skip


def blocks(run: Run) -> Iterator[Block]:
    """The figures, and how to see more."""
    whole = _whole(run)
    if whole is None:
        results = [one for one in run.results if has_figures(one)]
        yield _table(results)
        yield from _standing_out(run, results)
        return
    yield from whole
    matrices = [one for one in run.results if one.benchmark != "copy"]
    if any(cell.expected for _, cell in cells_of(matrices)):
        yield Prose([(), plain(MATRIX, "dim")])


def has_few(run: Run) -> bool:
    """Whether the run has figures of so few benchmarks that all are shown."""
    return len({one.benchmark for one in run.results if has_figures(one)}) <= FEW


def _whole(run: Run) -> list[Block] | None:
    """The blocks of all figures; None if there are too many for a screen."""
    if has_few(run):
        return list(figures.blocks(run))
    found, height = [], 0
    for block in figures.blocks(run):
        found.append(block)
        height += _height(block)
        if height > MOST_LINES:
            return None
    return found


def _height(block: Block) -> int:
    """The approximate number of lines that a block takes."""
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
    """A figure with its word, result and cell."""

    figure: float
    word: str
    result: Result
    cell: CellResult

    @property
    def name(self) -> str:
        return f"{self.word} {place_of(self.result, self.cell)}".strip()


def _table(results: Sequence[Result]) -> Table:
    """A table with a line for each benchmark, or for benchmarks that differ by one word of their
    names."""
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
    return without_empty(Table(caption, _HEADS, rows, lines=lines))


def _rank(family: Family) -> tuple[bool, bool, bool]:
    """A sort key for families: first what stands out, then families that have a median, then judged
    ones."""
    cells = [cell for _, cell in cells_of(family.results)]
    odd = any(cell.status in BROKEN or sign_of(cell) for cell in cells)
    return not odd, family.is_range, not any(map(is_judged, cells))


def _row(family: Family, usual: int) -> tuple[Entry, ...]:
    known = [_known(*each) for each in zip(family.words, family.results, strict=True)]
    size = max(size_without_cells(one) or 0 for one in family.results)
    cells = [cell for _, cell in cells_of(family.results)]
    shares = [one for cell in cells if (one := share_shown(cell)) is not None]
    return (
        Entry(label(family.name)),
        *map(Entry, _figures(family, known)),
        Entry(_unit(family)),
        Entry(format_size(size) if size not in (usual, 0) else ""),
        share(min(shares, default=None)),
        _verdict(family.results, cells),
        Entry(_where(family, known), tone="dim"),
    )


def _known(word: str, result: Result) -> list[_ScreenFigure]:
    """The figures of a result, ascending; for a collective, whose cells have times, its
    bandwidths."""
    found = []
    for cell in result.cells:
        own = bandwidths(cell)
        figure = cell.headline if own is None else own.bus
        if figure is not None:
            found.append(_ScreenFigure(figure, word, result, cell))
    return sorted(found, key=lambda one: one.figure)


def _figures(family: Family, known: Sequence[Sequence[_ScreenFigure]]) -> Sequence[str]:
    """The median, the lowest and the highest figure, for each engine; figures that settings change
    are shown as a range only."""
    if family.results[0].unit == COLLECTIVE.symbol:
        return (brief(max(one.figure for own in known for one in own), BANDWIDTH.symbol), "", "")
    unit = family.results[0].unit
    figures = [[one.figure for one in own] for own in known]
    if family.is_range:
        every = [one for own in figures for one in own]
        ends = dict.fromkeys(brief(end(every), unit) for end in (min, max))
        return ("–".join(ends), "", "")
    middle, least, most = (
        " ".join(brief(of(own), unit) for own in figures) for of in (median, min, max)
    )
    return (middle, least, most) if any(len(own) > 1 for own in figures) else (middle, "", "")


def _unit(family: Family) -> str:
    unit = unit_of(family.results[0].unit)
    return f"{BANDWIDTH.shown} busbw" if unit == COLLECTIVE else unit.shown


def _verdict(results: Sequence[Result], cells: Sequence[CellResult]) -> Entry:
    """The worst verdict of these cells; if some are judged and none is bad, how many are."""
    word = word_of(results, cells)
    if word is None:
        return Entry("")
    if word.kind != "part":
        return verdict_of(results, cells)
    passed = [cell for cell in cells if cell.status == "pass"]
    return Entry(f"{sum(map(is_judged, passed))}/{len(passed)} ok", tone="good")


def _where(family: Family, known: Sequence[Sequence[_ScreenFigure]]) -> str:
    """The cells that stand out, else the ends of a range, else the lowest cell if it is far off."""
    odd = [one.name for own in known for one in own if sign_of(one.cell) not in ("", HELD)]
    if odd:
        return f"{odd[0]}{f' and {len(odd) - 1} more' if len(odd) > 1 else ''}"
    if family.is_range and any(len(own) > 1 for own in known):
        every = sorted((one for own in known for one in own), key=lambda one: one.figure)
        return " to ".join(dict.fromkeys((every[0].name, every[-1].name)))
    far = [own[0] for own in known if own[-1].figure - own[0].figure > UNIFORM * own[0].figure]
    return f"least {far[0].name}" if far else ""


def _standing_out(run: Run, results: Sequence[Result]) -> Iterator[Block]:
    """The matrix with the figure that is lowest relative to what was expected; none if no figure is
    odd."""
    odd = [
        (share_shown(cell) or 0.0, result)
        for result in results
        if form_of(result, "summary") in ("matrix", "columns")
        for cell in result.cells
        if cell.status in BROKEN or sign_of(cell)
    ]
    if odd:
        least = min(share for share, _ in odd)
        result = next(result for share, result in odd if share <= _MUCH_THE_SAME * least)
        form = form_of(result, "summary")
        yield from figures.blocks_of(SharedTable(form, (result,)), run)

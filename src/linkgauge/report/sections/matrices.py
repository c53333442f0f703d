"""Every figure: matrices as heat maps, with shares of what is expected; tables of single cells."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import median

from linkgauge.model.result import CellResult, Result
from linkgauge.model.transfer import Place
from linkgauge.model.units import format_size, unit_of
from linkgauge.report.blocks import (
    Block,
    Column,
    Entry,
    Heat,
    Line,
    Prose,
    Shade,
    Span,
    Table,
    line_of,
    plain,
)
from linkgauge.report.cell_sizes import sizes_of
from linkgauge.report.cell_table import error_of
from linkgauge.report.expectations import HELD, held_below, reference_of
from linkgauge.report.folding import Entry as Shown
from linkgauge.report.forms import cells_of, columns_of, meaning_of, rows_of
from linkgauge.report.many import blocks_of_many, is_many
from linkgauge.report.matrix import in_order
from linkgauge.report.remarks import below_lines
from linkgauge.report.results import (
    Placed,
    figure,
    held_note,
    label,
    placed,
    shade_of,
    share,
    share_shown,
    verdict,
    without_empty,
)
from linkgauge.report.run_text import heading
from linkgauge.report.shading import HELD_MEANING, PEERS_MEANING, shaded_headline
from linkgauge.report.verdicts import is_judged

from . import OneRun, Section

FAR_BELOW = 0.75
"""Of the median of a matrix."""
FEWEST = 6
"""Figures of which a median tells something."""
ODD_SIGN = HELD
MOST_LINES = 8
"""Lines below a matrix."""
_HEADS = (
    Column("benchmark"), Column("figure", True), Column("unit"), Column("verdict"),
    Column("of expected", True), Column("expected", True), Column("±", True),
    Column("slow p95", True),
)  # fmt: skip


SHADES = (
    "Green is as expected, amber below (▼), what slow links allow (↓) or far from its peers (▽ △),"
    " red below half (▼▼); blue is not judged, and darker for more."
)


def _blocks(one: OneRun) -> Iterator[Block]:
    places = list(placed(one.run))
    shaded = ("columns", "levels", "matrix")
    if any(p.block.form in shaded and not is_many(p.block.results[0]) for p in places):
        yield Prose((plain(SHADES, "dim"),))
    for place in places:
        match place.block.form:
            case "rows" | "transfers":
                yield _single(place)._replace(anchor=place.anchor)
            case "columns":
                yield _columns(place)
            case "sizes":
                yield from _by_size(place)
            case "matrix" if is_many(place.block.results[0]):
                yield from blocks_of_many(place.block.results[0], place.anchor)
            case "levels" | "matrix" | "summary" | "collectives":
                yield _matrix(place)


def _single(place: Placed) -> Table:
    rows = []
    for result, cell in cells_of(place.block.results):
        where = f" {cell.place}" if len(result.cells) > 1 else ""
        slow = cell.summary.slow_p95 if cell.summary is not None else None
        judged = is_judged(cell)
        rows.append((
            Entry(label(f"{result.benchmark}{where}")),
            figure(cell.headline, result.unit, "strong"),
            Entry(unit_of(result.unit).shown),
            verdict([result], [cell]),
            share(share_shown(cell)),
            figure(reference_of(cell) if judged else None, result.unit),
            Entry(error_of(cell)),
            figure(slow, result.unit),
        ))  # fmt: skip
    note = held_note(cell for _, cell in cells_of(place.block.results))
    caption = f"{_common(place.block.results)}{note}"
    return without_empty(Table(plain(caption), _HEADS, rows, sortable=True))


def _common(results: Sequence[Result]) -> str:
    """Where they were measured, and their sizes."""
    sizes = sorted({size for one in results for size in sizes_of(one)})
    ends = " to ".join(map(format_size, dict.fromkeys((sizes[0], sizes[-1])))) if sizes else ""
    return label(f"single figures on {results[0].backend} {ends}".strip())


def _columns(place: Placed) -> Heat:
    """A row for each benchmark, or for each of its rows."""
    results = place.block.results
    columns = columns_of(results[0])
    names: list[str] = []
    lines: list[list[Shade | None]] = []
    for result in results:
        several = len(rows_of(result)) > 1
        own = rows_of(result)
        names += [f"{result.benchmark} {row}" if several else result.benchmark for row in own]
        lines += _lines(result, own, columns)
    unit = unit_of(results[0].unit).shown
    title = (Span(f"{len(names)} benchmarks" if len(names) > 1 else label(names[0]), "strong"),)
    meaning = meaning_of(results[0].title)
    caption = f"{unit}, {_sized(results)}columns: {meaning or 'column'}"
    return _heat(place, title, caption, meaning, names, columns, lines)


def _sized(results: Sequence[Result]) -> str:
    sizes = {size for one in results for size in sizes_of(one)}
    return f"{format_size(sizes.pop())}, " if len(sizes) == 1 else ""


def _matrix(place: Placed) -> Heat:
    (result,) = place.block.results
    rows, columns = rows_of(result), columns_of(result)
    if set(rows) == set(columns):
        rows = columns = in_order(rows)
    lines = list(_lines(result, rows, columns))
    unit = unit_of(result.unit)
    caption = f"{result.title}, {unit.quantity} in {unit.shown}"
    return _heat(place, line_of(heading(result)), caption, "", rows, columns, lines)


def _by_size(place: Placed) -> Iterator[Heat]:
    """A row for each path, a column for each size."""
    by_name: dict[str, list[Result]] = {}
    for result in place.block.results:
        by_name.setdefault(result.benchmark, []).append(result)
    for number, (name, results) in enumerate(by_name.items()):
        found = {(str(c.place), r.size): c for r in results for c in r.cells}
        paths = list(dict.fromkeys(path for path, _ in found))
        sizes = sorted({size for _, size in found})
        lines = [
            [_shade(found.get((path, size)), results[0], None) for size in sizes] for path in paths
        ]
        unit = unit_of(results[0].unit)
        caption = f"{results[0].title}, {unit.quantity} in {unit.shown}, by size"
        own = place if number == 0 else place._replace(anchor=f"{place.anchor}-{number}")
        columns = [format_size(size) for size in sizes]
        one_only = Placed(own.anchor, own.block._replace(results=tuple(results)))
        yield _heat(
            one_only, (Span(label(name), "strong"),), caption, "path", paths, columns, lines
        )


def _heat(
    place: Placed, title: Line, caption: str, corner: str, rows: Sequence[str],
    columns: Sequence[str], lines: Sequence[Sequence[Shade | None]],
) -> Heat:  # fmt: skip
    below = [line_of(line) for line in below_lines(place.block.results, whole=False)]
    more: list[Line] = []
    if len(below) > MOST_LINES:
        more = [(Span(f"and {len(below) - MOST_LINES} more remarks", "dim"),)]
    names = tuple(map(label, rows))
    heads = tuple(map(label, columns))
    marks = {shade.sign for line in lines for shade in line if shade is not None}
    more += [(Span(sign, "warn"), Span(f" {meaning}"))
             for sign, meaning in PEERS_MEANING.items() if sign in marks]  # fmt: skip
    odd = sum(shade is not None and shade.sign == ODD_SIGN for line in lines for shade in line)
    held = sum(cell.verdict == "ok" and held_below(cell) is not None
               for _, cell in cells_of(place.block.results))  # fmt: skip
    if odd and held:
        more.append((Span(ODD_SIGN, "warn"), Span(f" {HELD_MEANING}; the share is of their best")))
    if odd > held:
        text = "far below the median of all, although the path as it is should reach no more"
        more.append((Span(ODD_SIGN, "warn"), Span(f" {text}")))
    told = (*below[:MOST_LINES], *more)
    return Heat(place.anchor, title, label(caption, 200), label(corner), names, heads, lines, told)


def _ends(result: Result) -> tuple[float, float] | None:
    """The least and the most figure."""
    figures = [cell.headline for cell in result.cells if cell.headline is not None]
    return (min(figures), max(figures)) if figures else None


def _lines(
    result: Result, rows: Sequence[str], columns: Sequence[str]
) -> Iterator[list[Shade | None]]:
    cells = {cell.place: cell for cell in result.cells}
    ends, below = _ends(result), _far_below(result)
    for row in rows:
        yield [_shade(cells.get(Place(row, column)), result, ends, below) for column in columns]


def _far_below(result: Result) -> float | None:
    """Figures below this are remarkable even where no more can be expected: with half of its links,
    a path has half of the rate of all others. None where figures differ by their settings."""
    figures = [cell.headline for cell in result.cells if cell.headline is not None]
    if result.sweep or result.better == "lower" or len(figures) < FEWEST:
        return None
    return FAR_BELOW * median(figures)


def _shade(
    cell: CellResult | None,
    result: Result,
    ends: tuple[float, float] | None,
    below: float | None = None,
) -> Shade | None:
    entry: Shown = shaded_headline(cell, result.unit)
    shade = shade_of(cell, result.unit, entry.text, entry.sign, ends)
    if shade is not None and entry.sign == HELD:
        return shade._replace(share=_of_best(cell))
    figure = cell.headline if cell is not None and cell.verdict == "ok" else None
    if shade is None or below is None or figure is None or figure >= below:
        return shade
    return shade._replace(tone="warn", sign=ODD_SIGN)


def _of_best(cell: CellResult | None) -> str:
    """The share of what links carry at their best."""
    best = held_below(cell) if cell is not None else None
    return f"{cell.headline / best:.0%}" if cell and cell.headline and best else ""


SECTION = Section("figures", "All figures", 30, of_run=_blocks)

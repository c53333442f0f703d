"""The body of a run on the terminal: tables of what says no more than a row, and matrices of what
does, each with what is to be said of its figures."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from rich.console import Group, RenderableType
from rich.text import Text

from linkgauge.model.result import CellResult, Result, Run
from linkgauge.model.transfer import Place
from linkgauge.model.units import format_size, unit_of

from .cell_sizes import size_of, sizes_of
from .cell_table import CellTable, Row
from .collective_text import collective_lines
from .folding import Entry, Folded
from .forms import Block, blocks, cells_of, columns_of, meaning_of, rows_of
from .latency_text import level_lines
from .matrix import brief, in_order
from .remarks import below_lines
from .run_text import (
    MOST_COLUMNS,
    hanging,
    heading,
    render_transfers,
    simulated,
    title_line,
    verdict_word,
)
from .shading import ABSENT, legend, shaded_headline
from .size_table import size_tables
from .summaries import summary_table
from .sweep_text import EXTREMES, line_lines

FEW_LINES = 4
"""Of more paths, lines over sizes are summed up."""
HINT = "--matrix shows more: percentiles, and how the expected figures are derived"


def body_lines(run: Run, *, whole: bool) -> Iterator[RenderableType]:
    """All that was measured, but for results without any figure. `whole` is with matrices as large
    as they are."""
    hinted = False
    for block in blocks(run.results, whole=whole):
        yield Group(*_figures(block, whole=whole), *_below(block), *_lines(block, run))
        if block.form != "transfers":
            yield Text()
            hinted = hinted or any(cell.expected for _, cell in cells_of(block.results))
    if hinted:
        yield Group(hanging(Text(HINT, "dim")), Text())


def _below(block: Block) -> Iterator[RenderableType]:
    """What is said of the figures, unless it was said with them."""
    if block.form != "transfers":
        yield from map(hanging, below_lines(block.results, whole=block.form == "rows"))


def _lines(block: Block, run: Run) -> Iterator[RenderableType]:
    """What fits the times of each benchmark over sizes."""
    names = dict.fromkeys((one.benchmark, one.backend) for one in block.results)
    for own in names:
        lines = [one for one in run.lines if (one.benchmark, one.backend) == own]
        several, most = (f"{own[0]}: ", 1) if len(names) > 1 else ("", FEW_LINES)
        yield from (hanging(Text(several, "dim") + line) for line in line_lines(lines, most))


def _figures(block: Block, *, whole: bool) -> Iterator[RenderableType]:
    results = block.results
    match block.form:
        case "rows":
            yield _cell_table(results)
        case "columns":
            yield from _columns(results, whole=whole)
        case "summary":
            yield _title(results, unit_of(results[0].unit).shown)
            yield summary_table(results)
        case "sizes":
            yield _title(results, f"{unit_of(results[0].unit).shown} by size", sized=False)
            yield from size_tables(results)
        case "levels":
            yield heading(results[0])
            yield title_line(results[0])
            yield from map(hanging, level_lines(results[0]))
        case "collectives":
            yield heading(results[0])
            yield from collective_lines(results[0])
        case "transfers":
            yield render_transfers(results[0])
        case "matrix":
            yield from _matrix(results[0], whole=whole)


def _title(results: Sequence[Result], more: str = "", *, sized: bool = True) -> RenderableType:
    """What a table's results have in common."""
    return hanging(_common(results, more, sized=sized))


def _common(
    results: Sequence[Result], more: str = "", *, sized: bool = True, judged: bool = True
) -> Text:
    size = _usual_size(results) if sized else 0
    parts = (results[0].backend, format_size(size) if size else "", more)
    line = Text("  ".join(part for part in parts if part), "bold")
    if judged and (word := verdict_word(results)) is not None:
        line.append("  ").append(word)
    return line.append("  ").append(simulated()) if results[0].simulated else line


def _usual_size(results: Sequence[Result]) -> int:
    """That of the most results."""
    return Counter(next(iter(sizes_of(one)), 0) for one in results).most_common(1)[0][0]


def _cell_table(results: Sequence[Result]) -> CellTable:
    usual = _usual_size(results)
    rows = [
        Row(_name(result, cell, usual), cell, result.unit) for result, cell in cells_of(results)
    ]
    return CellTable(_common(results, judged=False), rows)


def _name(result: Result, cell: CellResult, usual: int) -> str:
    """The benchmark's, with the cell's place unless it is the only pair of devices, and the size if
    it differs."""
    only = len(result.cells) == 1 and cell.row.isdecimal() and cell.column.isdecimal()
    place = "" if only else f" {cell.place}"
    own = size_of(result, cell)
    size = f"  {format_size(own)}" if own not in (None, usual) else ""
    return f"{result.benchmark}{place}{size}"


def _columns(results: Sequence[Result], *, whole: bool) -> Iterator[RenderableType]:
    """A line for each row of cells."""
    columns = _some(columns_of(results[0]), whole=whole)
    names, entries = [], []
    for result in results:
        several = len(rows_of(result)) > 1
        for row, line in _entries(result, columns):
            names.append(f"{result.benchmark} {row}" if several else result.benchmark)
            entries.append(line)
    unit = unit_of(results[0].unit).shown
    yield _title(results, f"{unit}  columns: {meaning_of(results[0].title)}")
    yield Folded(names, columns, entries, names=True)
    yield from _notes_on(results[0], columns, entries)


def _matrix(result: Result, *, whole: bool) -> Iterator[RenderableType]:
    """The matrix of headlines. A single column is shown as a row; of a sweep with very many rows,
    the extremes."""
    yield heading(result)
    yield title_line(result)
    columns = _some(columns_of(result), whole=whole) if result.sweep else columns_of(result)
    if set(columns) == set(rows_of(result)):
        columns = in_order(columns)
    lines = [*_entries(result, columns)]
    if result.sweep and len(lines) > MOST_COLUMNS and not whole:
        yield _extremes(result, columns)
    elif len(columns) == 1:
        yield Folded(columns, [row for row, _ in lines], [[line[0] for _, line in lines]])
    else:
        yield Folded([row for row, _ in lines], columns, [line for _, line in lines])
    yield from _notes_on(result, columns, [line for _, line in lines])


def _entries(result: Result, columns: Sequence[str]) -> Iterator[tuple[str, list[Entry]]]:
    """Each row with what stands in its columns."""
    cells = {cell.place: cell for cell in result.cells}
    rows = rows_of(result)
    for row in in_order(rows) if set(columns) == set(rows) else rows:
        yield row, [shaded_headline(cells.get(Place(row, at)), result.unit) for at in columns]


def _some(columns: tuple[str, ...], *, whole: bool) -> tuple[str, ...]:
    """Of too many columns some, evenly chosen, with the last."""
    if len(columns) <= MOST_COLUMNS or whole:
        return columns
    return tuple(columns[(n + 1) * len(columns) // SOME - 1] for n in range(SOME))


def _extremes(result: Result, columns: Sequence[str]) -> Folded:
    """The least, the median and the most of each column."""
    figures = {
        at: [c.headline for c in result.cells if c.column == at and c.headline is not None]
        for at in columns
    }
    lines = [
        [Entry(brief(of(own), result.unit)) if own else ABSENT for own in figures.values()]
        for of in EXTREMES.values()
    ]
    return Folded([*EXTREMES], columns, lines)


def _notes_on(
    result: Result, columns: Sequence[str], entries: Sequence[Sequence[Entry]]
) -> Iterator[RenderableType]:
    """What the signs mean, and what is left out."""
    line = legend([entry for row in entries for entry in row])
    if line is not None:
        yield hanging(line)
    rows, all_of = len(rows_of(result)), len(columns_of(result))
    left = [f"{len(columns)} of {all_of} columns"] if len(columns) < all_of else []
    left += [f"{len(EXTREMES)} lines for {rows} rows"] if len(entries) > MOST_COLUMNS else []
    if left:
        yield hanging(Text(f"{', '.join(left)}: --all shows the whole", "dim"))


SOME = 8
"""Columns of a sweep that has too many of them."""

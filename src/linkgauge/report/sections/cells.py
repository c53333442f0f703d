"""Shows cells as a table with a line for each cell. A line has the figure, interval, slow samples,
expected figure, verdict and histogram. Also makes a table of one cell's transfers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from linkgauge.model.cell_id import place_of
from linkgauge.model.documents.result import CellResult, Result
from linkgauge.model.units import format_size, unit_of
from linkgauge.report.blocks import Block, Column, Entry, Line, Span, Table, line, plain
from linkgauge.report.forms import cells_of
from linkgauge.report.matrix import brief
from linkgauge.report.results import (
    common,
    degraded_note,
    figure,
    label,
    marks,
    size_of,
    usual_size,
    verdict,
    without_empty,
)
from linkgauge.report.shading import error_of, sign_of
from linkgauge.report.words.expectations import is_judged
from linkgauge.report.words.figures import histogram
from linkgauge.report.words.host_figures import in_words, unit_in_words

from .figures import ResultView

_BINS = 8
_CELLS = (
    Column("benchmark"), Column("median", True), Column("unit"), Column("±", True, 3),
    Column("slow p95", True, 5, "p95"), Column("worst", True, 4), Column("of expected", True, 2),
    Column("verdict", rank=1, short=" "), Column("samples", rank=6),
)  # fmt: skip


def rows(view: ResultView) -> Iterator[Block]:
    yield table_of(view.results, view.below(), view.anchor)


def transfers(view: ResultView) -> Iterator[Block]:
    yield transfers_of(view.first, view.below(), view.anchor)


def table_of(results: Sequence[Result], below: Sequence[Line], anchor: str) -> Table:
    """Makes a table with a line for each cell."""
    found = list(cells_of(results))
    usual = usual_size(results)
    some = any(is_judged(cell) for _, cell in found)
    rows = [_cell_row(result, cell, usual, some=some) for result, cell in found]
    note = degraded_note(cell for _, cell in found)
    lines = (*([plain(note, "dim")] if note else ()), *below)
    caption = common(results, judged=False)
    return without_empty(Table(caption, _CELLS, rows, True, anchor, lines))


def _cell_row(result: Result, cell: CellResult, usual: int, *, some: bool) -> tuple[Entry, ...]:
    summary = cell.summary if len(cell.samples) > 1 else None  # one sample is the figure itself
    slow = summary.slow_p95 if summary is not None else None
    worst = None if summary is None else summary.max if result.better == "lower" else summary.min
    bars = histogram(cell.samples, _BINS) if summary is not None and min(cell.samples) > 0 else ""
    return (
        Entry(label(_name(result, cell, usual))),
        figure(cell.headline, result.unit, "strong"),
        Entry(unit_in_words(result, cell) if cell.headline is not None else ""),
        Entry(error_of(cell)),
        figure(slow, result.unit),
        figure(worst, result.unit),
        _share(result, cell, some=some),
        Entry("") if _is_unjudged(cell) and not sign_of(cell) else verdict([result], [cell]),
        Entry(bars, tone="dim"),
    )


def _is_unjudged(cell: CellResult) -> bool:
    return cell.status == "pass" and not is_judged(cell)


def _share(result: Result, cell: CellResult, *, some: bool) -> Entry:
    """Returns a table entry with the cell's share of the expected figure. If links on its way run
    below their best speed, the figure at the best speed is used instead. If `some` other cells are
    judged, an unjudged cell says that it is not judged."""
    if _is_unjudged(cell):
        return Entry("not judged" if some else "", tone="dim")
    reference, share = cell.at_best, cell.reached
    if share is None or reference is None:
        return Entry("")
    return Entry(f"{share:.0%} of {brief(reference, result.unit)}", share)


def _name(result: Result, cell: CellResult, usual: int) -> str:
    """Returns the figure's name in words, or the benchmark's name and the cell's place. The place
    is left out for a single pair of devices. The size is added if it is not the `usual` size."""
    words = in_words(result, cell)
    only = len(result.cells) == 1 and cell.row.isdecimal() and cell.column.isdecimal()
    own = None if cell.operation == "ping-pong" else size_of(result, cell)  # always a cache line
    size = f"  {format_size(own)}" if own not in (None, usual) else ""
    name = words or f"{result.benchmark}{'' if only else f' {place_of(result, cell)}'}"
    return f"{name}{size}"


_TRANSFERS = (
    Column("transfer"), Column("median", True), Column("unit"), Column("interval", rank=1),
    Column("slow p99", True, 2), Column("samples", rank=3),
)  # fmt: skip


def transfers_of(result: Result, below: Sequence[Line], anchor: str) -> Table:
    """Shows the single cell of `linkgauge copy` as a table: each transfer's figure, then the
    total."""
    (cell,) = result.cells
    found = [(str(cell.transfers[one.transfer]), one.summary) for one in cell.parts]
    found.append(("total" if cell.parts else str(cell), cell.summary))
    rows = []
    for name, summary in found:
        if summary is not None:
            ends = [brief(end, result.unit) for end in summary.ci95 or ()]
            rows.append((
                Entry(name),
                figure(summary.median, result.unit, "strong"),
                Entry(unit_of(result.unit).shown),
                Entry(f"{_kept(cell)}[{', '.join(ends)}]" if ends else "", tone="dim"),
                figure(summary.slow_p99, result.unit, "dim"),
                Entry(f"{summary.n} samples of {cell.loops} loops", tone="dim"),
            ))  # fmt: skip
    caption = line(Span(format_size(result.size), "strong"), *marks([result]))
    return without_empty(Table(caption, _TRANSFERS, rows, False, anchor, below))


def _kept(cell: CellResult) -> str:
    """Returns how often a figure of another run is expected within the cell's interval. Returns
    `samples` if this is unknown because the interval comes from this run's samples alone."""
    if cell.interval is None:
        return ""
    return "samples " if cell.interval.coverage is None else f"{cell.interval.coverage:.0%} "

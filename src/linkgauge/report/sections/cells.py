"""Shows cells, a copy's transfers, and calls of a collective, in tables with a line for each."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from msgspec.structs import replace

from linkgauge.model.cell_id import bytes_of, place_of
from linkgauge.model.documents.result import CellResult, Result
from linkgauge.model.operations.busbw import bandwidths
from linkgauge.model.operations.collective import Collective
from linkgauge.model.stats.summary import known_percentile
from linkgauge.model.units import (
    BANDWIDTH,
    COLLECTIVE,
    count_of,
    format_figure,
    format_size,
    unit_of,
)
from linkgauge.report.blocks import (
    TONES,
    Block,
    Column,
    Entry,
    Line,
    Prose,
    Span,
    Table,
    line,
    plain,
)
from linkgauge.report.forms import cells_of, error_of, sign_of
from linkgauge.report.results import (
    common,
    degraded_note,
    figure,
    heading,
    label,
    marks,
    usual_size,
    verdict,
    without_empty,
)
from linkgauge.report.words.bars import histogram
from linkgauge.report.words.comparison import in_words, unit_in_words
from linkgauge.report.words.expectations import is_judged

from .figures import ResultView

_BINS = 8
_CELLS = (
    Column("benchmark"), Column("median", True), Column("unit"), Column("±", True, 3),
    Column("slowest 5%", True, 5, "slow"), Column("worst", True, 4), Column("of expected", True, 2),
    Column("verdict", rank=1, short=" "), Column("samples", rank=6),
)  # fmt: skip


def rows(view: ResultView) -> Iterator[Block]:
    yield table_of(view.results, view.below(), view.anchor)


def table_of(results: Sequence[Result], below: Sequence[Line], anchor: str) -> Table:
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
    if _is_unjudged(cell):
        return Entry("not judged" if some else "", tone="dim")
    reference, share = cell.at_best, cell.reached
    if share is None or reference is None:
        return Entry("")
    return Entry(f"{share:.0%} of {format_figure(reference, result.unit)}", share)


def _name(result: Result, cell: CellResult, usual: int) -> str:
    words = in_words(result, cell)
    only = len(result.cells) == 1 and cell.row.isdecimal() and cell.column.isdecimal()
    is_line = cell.operation == "ping-pong"  # always a cache line
    own = None if is_line else bytes_of(cell, result.size)
    size = f"  {format_size(own)}" if own not in (None, usual) else ""
    name = words or f"{result.benchmark}{'' if only else f' {place_of(result, cell)}'}"
    return f"{name}{size}"


_TRANSFERS = (
    Column("transfer"), Column("median", True), Column("unit"), Column("interval", rank=1),
    Column("slowest 1%", True, 2), Column("samples", rank=3),
)  # fmt: skip


def transfers(view: ResultView) -> Iterator[Block]:
    """Shows each transfer of `linkgauge copy`, then their total."""
    result = view.first
    (cell,) = result.cells
    found = [(str(cell.transfers[one.transfer]), one.summary) for one in cell.parts]
    found.append(("total" if cell.parts else str(cell), cell.summary))
    rows = []
    for name, summary in found:
        if summary is not None:
            ends = [format_figure(end, result.unit) for end in summary.ci95 or ()]
            rows.append((
                Entry(name),
                figure(summary.median, result.unit, "strong"),
                Entry(unit_of(result.unit).shown),
                Entry(f"{_kept(cell)}[{', '.join(ends)}]" if ends else "", tone="dim"),
                figure(summary.slow_p99, result.unit, "dim"),
                Entry(f"{summary.n} samples of {cell.loops} loops", tone="dim"),
            ))  # fmt: skip
    caption = line(Span(format_size(result.size), "strong"), *marks([result]))
    yield without_empty(Table(caption, _TRANSFERS, rows, False, view.anchor, view.below()))


def _kept(cell: CellResult) -> str:
    """Formats an interval's coverage: `95% ` of other runs, or `samples ` if that is unknown."""
    if cell.interval is None:
        return ""
    return "samples " if cell.interval.coverage is None else f"{cell.interval.coverage:.0%} "


_SIDES = ("", "in place ")
_OF_CALLS = ("time (µs)", "algbw", "busbw", "#wrong")
_SINGLES = ("p50 (µs)", "p99 (µs)", "last, by µs")

Side = Mapping[str, CellResult]
Entries = Callable[[CellResult | None], Iterator[Entry]]


def tables_of(result: Result) -> Iterator[Table]:
    found: dict[Collective, dict[bool, dict[str, CellResult]]] = {}
    for cell in result.cells:
        if isinstance(cell.operation, Collective):
            equivalent = replace(cell.operation, in_place=False)
            own = found.setdefault(equivalent, {}).setdefault(cell.operation.in_place, {})
            own[cell.column] = cell
    for work, sides in found.items():
        name = _call(work, next(iter(sides[min(sides)].values())))
        title = line(Span(name, "strong"), f"  {how}" if (how := _how(work)) else "")
        yield _table(title, sides, _OF_CALLS, _figures)
        if any(cell.iterations for side in sides.values() for cell in side.values()):
            single = f"{name}: single calls"
            yield _table(plain(single), sides, _SINGLES, _singles)


def collectives(view: ResultView) -> Iterator[Block]:
    """Shows the calls of a collective and, below the last table, the average bus bandwidth."""
    result = view.first
    title = result.title.partition(", type(row)")[0]
    units = f"time ({COLLECTIVE.shown}), bandwidths ({BANDWIDTH.shown})"
    yield Prose((heading(result), plain(f"{title}: {units}")))
    average = None
    if result.average is not None:
        figured, cells = sum(map(bool, map(bandwidths, result.cells))), len(result.cells)
        of = f" ({figured} of {cells} cells)" if figured < cells else ""
        figure = f"{result.average / BANDWIDTH.scale:.2f} {BANDWIDTH.shown}"
        average = line("average bus bandwidth ", Span(figure, "strong"), of)
    tables = [*tables_of(result)]
    tables[-1] = tables[-1]._replace(lines=view.below(average))
    tables[0] = tables[0]._replace(anchor=view.anchor)
    yield from tables


def _call(work: Collective, cell: CellResult) -> str:
    groups = work.groups(len(cell.transfers))
    several = f"{len(groups)} groups of " if len(groups) > 1 else ""
    return f"{cell.row}, {several}{count_of(len(groups[0]), 'rank')}"


def _how(work: Collective) -> str:
    parts = (
        f"{work.aggregated} calls aggregated" if work.aggregated > 1 else "",
        "blocking" if work.blocking else "",
        "in a graph" if work.graphed else "",
        f"{work.registered} registration" if work.registered else "",
    )
    return ", ".join(part for part in parts if part)


def _table(
    title: Line, sides: Mapping[bool, Side], heads: Sequence[str], entries: Entries
) -> Table:
    places = sorted(sides)
    columns = [
        Column(head if number else f"{_SIDES[place]}{head}", True)
        for place in places
        for number, head in enumerate(heads)
    ]
    sizes = dict.fromkeys(size for side in sides.values() for size in side)
    rows = [
        (Entry(size), *(one for place in places for one in entries(sides[place].get(size))))
        for size in sizes
    ]
    return Table(title, (Column("size", True), *columns), rows)


def _figures(cell: CellResult | None) -> Iterator[Entry]:
    if cell is None or (own := bandwidths(cell)) is None:
        yield from (Entry("") for _ in _OF_CALLS)
        return
    tone = TONES[cell.verdict] if cell.verdict in ("low", "perhaps low", "high") else ""
    tone = tone if cell.status == "pass" else "bad"
    yield figure(cell.headline, COLLECTIVE.symbol, tone)
    for rate in (own.algorithm, own.bus):
        yield Entry(f"{rate / BANDWIDTH.scale:.2f}", rate, tone)
    yield Entry("") if cell.wrong is None else Entry(str(cell.wrong), cell.wrong, tone)


def _singles(cell: CellResult | None) -> Iterator[Entry]:
    from linkgauge.model.operations.stragglers import straggler_of

    each = (own.samples for own in cell.iterations) if cell else ()
    taken = sorted(map(max, zip(*each, strict=True)))
    for fraction in (0.50, 0.99):
        found = known_percentile(taken, fraction) if taken else None
        yield figure(found, COLLECTIVE.symbol)
    last = straggler_of(cell) if cell else None
    late = last and f"{last.rank} by {format_figure(last.wait, COLLECTIVE.symbol)}"
    yield Entry(late or "", tone="warn")

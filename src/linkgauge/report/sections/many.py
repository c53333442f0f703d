"""Shows results with too many cells for a matrix: a line for each, or distribution and extremes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import pairwise
from operator import attrgetter, itemgetter
from statistics import median, quantiles

from linkgauge.model.cell_id import place_of
from linkgauge.model.documents.result import CellResult, Result
from linkgauge.model.grouped import grouped
from linkgauge.model.units import format_figure, unit_of
from linkgauge.report.blocks import (
    Block,
    Column,
    Entry,
    Line,
    Prose,
    Shade,
    Span,
    Table,
    Tone,
    line,
    plain,
)
from linkgauge.report.forms import columns_of, legend, rows_of, shade
from linkgauge.report.matrix import in_order
from linkgauge.report.results import (
    common,
    ends,
    figure,
    heading,
    label,
    share,
    verdict,
    without_empty,
)
from linkgauge.report.words.sentences import first_of

from .figures import EQUIVALENT, WHOLE, ResultView

Known = Sequence[tuple[float, CellResult]]
"""Cells, each with its figure or its share."""
WORST = 12
_BOUNDS = (0.5, 0.75, 0.9, 0.97)
"""The shares of the median at which the classes of figures end."""


def blocks_of_many(view: ResultView) -> Iterator[Block]:
    result = view.first
    cells = [cell for cell in result.cells if cell.headline is not None]
    usual = median(cell.headline or 0.0 for cell in cells)
    measured = [((cell.headline or 0.0) / usual, cell) for cell in cells]
    low = sorted((each for each in measured if each[0] < _BOUNDS[-2]), key=itemgetter(0))
    yield Prose((heading(result), *view.below()))
    yield _distribution(result, measured)._replace(anchor=view.anchor)
    if low:
        yield _ends(measured)
        yield _pairs(result, low)


def _distribution(result: Result, measured: Known) -> Table:
    between = (f"{low:.0%} to {high:.0%}" for low, high in pairwise(_BOUNDS))
    classes = [f"below {_BOUNDS[0]:.0%}", *between, f"{_BOUNDS[-1]:.0%} or more"]
    heads = [Column("cells of"), Column("all", True), *(Column(one, True) for one in classes)]
    heads += [Column(one, True) for one in ("least", "median", "most")]
    by_column = grouped((each[1].column, each) for each in measured)
    rows = [_row(name, by_column[name], result.unit) for name in in_order(by_column)]
    if len(rows) > 1:
        rows.append(_row("all", measured, result.unit))
    unit = unit_of(result.unit)
    about = f"Shares of the median of all; {unit.quantity} in {unit.shown}"
    caption = plain(f"{label(result.title, 200)}. {about}")
    return without_empty(Table(caption, heads, rows))


def _row(name: str, own: Known, unit: str) -> tuple[Entry, ...]:
    counts = Counter(sum(share >= bound for bound in _BOUNDS) for share, _ in own)
    tones: tuple[Tone, ...] = ("bad", "bad", "warn", "", "")
    shown = [
        Entry(f"{counts[at]:,}" if counts[at] else "", counts[at], tones[at])
        for at in range(len(_BOUNDS) + 1)
    ]
    return (
        Entry(label(name), tone="strong"),
        Entry(f"{len(own):,}", len(own)),
        *shown,
        *ends([cell.headline or 0.0 for _, cell in own], unit),
    )


def _ends(measured: Known) -> Table:
    found = grouped(
        (f"{end}, {cell.column}", share)
        for share, cell in measured
        for end in cell.row.split("->")
    )  # fmt: skip
    low = {end: sum(one < _BOUNDS[-2] for one in shares) for end, shares in found.items()}
    worst = sorted(filter(low.get, found), key=lambda at: (-low[at] / len(found[at]), -low[at]))
    rows = [
        (
            Entry(label(end), tone="strong"),
            Entry(f"{len(found[end])}", len(found[end])),
            Entry(f"{low[end]}", low[end], "warn"),
            share(min(found[end])),
            share(median(found[end])),
        )
        for end in worst[:WORST]
    ]
    heads = (
        Column("end"), Column("cells", True), Column("low", True), Column("least", True),
        Column("median", True),
    )  # fmt: skip
    return Table(plain(_caption("Ends of low cells", len(rows), len(worst))), heads, rows)


def _pairs(result: Result, low: Known) -> Table:
    rows = [
        (
            Entry(label(f"{cell.row}, {cell.column}"), tone="strong"),
            figure(cell.headline, result.unit),
            share(of_usual),
            verdict([result], [cell]),
        )
        for of_usual, cell in low[:WORST]
    ]
    heads = (
        Column("cell"), Column(unit_of(result.unit).shown, True), Column("of the median", True),
        Column("verdict"),
    )  # fmt: skip
    return Table(plain(_caption("The lowest cells", len(rows), len(low))), heads, rows)


def _caption(what: str, shown: int, there: int) -> str:
    less = f"{_BOUNDS[-2]:.0%}"
    more = f"; {shown} of {there:,}, run.json has all" if there > shown else ""
    return f"{what} (below {less} of the median){more}"


_HEADS = (
    Column("benchmark"), Column("cells", True, 1), Column("median", True), Column("least", True),
    Column("at", rank=2), Column("most", True), Column("at", rank=3), Column("verdict", rank=1),
)  # fmt: skip
_LEAST = 4
_FENCE = 1.5
"""Tukey's fence, in distances between the quartiles."""
_CLEARLY = 0.05


def summary(view: ResultView) -> Iterator[Block]:
    """Shows a line for each result. Names unusual cells if the result is not judged."""
    results = view.results
    hint = {"summary": WHOLE, "uniform": EQUIVALENT}.get(view.large, "")
    caption = common(results, unit_of(view.first.unit).shown)
    known = [_known(result) for result in results]
    rows = [_summary(*each) for each in zip(results, known, strict=True)]
    ends = [shade(own[at][1], "") for own in known if own for at in (0, -1)]
    more = (legend(ends), *_outlier_lines(results, known), plain(hint, "dim"))
    lines = (*(each for each in more if each), *view.below())
    yield without_empty(Table(caption, _HEADS, rows, True, view.anchor, lines))


def _known(result: Result) -> Known:
    found = [(cell.headline, cell) for cell in result.cells if cell.headline is not None]
    return sorted(found, key=lambda each: each[0])


def _summary(result: Result, known: Known) -> tuple[Entry, ...]:
    (_, least), (_, most) = known[0], known[-1]
    place, sampled = _namer(result), result.sampled
    sample = f", {sampled.pairs} of {sampled.all} pairs (seed {sampled.seed})" if sampled else ""
    return (
        Entry(label(f"{result.benchmark}{sample}")),
        Entry(f"{len(known):,}", len(known)),
        figure(median(value for value, _ in known), result.unit),
        *_end(result, least, place),
        *_end(result, most, place),
        verdict([result], result.cells),
    )


def _end(
    result: Result, cell: CellResult, place: Callable[[CellResult], str]
) -> tuple[Entry, Entry]:
    shown = shade(cell, result.unit) or Shade("")
    text = f"{shown.text}{shown.sign}"
    return Entry(text, cell.headline, shown.tone), Entry(place(cell), tone="dim")


def _namer(result: Result) -> Callable[[CellResult], str]:
    if len(columns_of(result)) == 1:
        return attrgetter("row")
    return attrgetter("column") if len(rows_of(result)) == 1 else partial(place_of, result)


def _outlier_lines(results: Sequence[Result], known: Sequence[Known]) -> Iterator[Line]:
    for result, own in zip(results, known, strict=True):
        if found := _outliers(own):
            place = _namer(result)
            names = [
                f"{place(cell)} {format_figure(cell.headline or 0.0, result.unit)}"
                for cell in found
            ]
            named = f" {result.benchmark} {first_of(names, ', ')}"
            yield line(Span("stands out", "warn"), named)


def _outliers(known: Known) -> list[CellResult]:
    if len(known) < _LEAST:
        return []
    low, middle, high = quantiles((value for value, _ in known), n=4)
    room = max(_FENCE * (high - low), _CLEARLY * middle)
    far = [
        (off, cell)
        for value, cell in known
        if (off := max(low - value, value - high)) > room and cell.verdict == "not judged"
    ]
    return [cell for _, cell in sorted(far, key=lambda each: -each[0])]

"""Makes tables of collectives. The main table has times and bandwidths by size, out of place and in
place. Each combination of number type and reduction (or root) has its own table. Another table has
the times of single iterations, with the rank for which the others wait."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from msgspec.structs import replace

from linkgauge.model.documents.result import CellResult, Result
from linkgauge.model.operations.busbw import bandwidths
from linkgauge.model.operations.collective import Collective
from linkgauge.model.operations.stragglers import straggler_of
from linkgauge.model.stats.summary import known_percentile
from linkgauge.model.units import BANDWIDTH, COLLECTIVE
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
from linkgauge.report.matrix import brief
from linkgauge.report.results import figure, heading

from .figures import ResultView

_SIDES = ("", "in place ")
_FIGURES = ("time (µs)", "algbw", "busbw", "#wrong")
_SINGLES = ("p50 (µs)", "p99 (µs)", "last, by µs")

Side = Mapping[str, CellResult]
"""The cells of one side, by size."""
Entries = Callable[[CellResult | None], Iterator[Entry]]


def tables_of(result: Result) -> Iterator[Table]:
    """Yields a table for each kind of call. A line has the figures out of place and in place. If
    single iterations were timed, a table of their times follows."""
    found: dict[Collective, dict[bool, dict[str, CellResult]]] = {}
    for cell in result.cells:
        if isinstance(cell.operation, Collective):
            alike = replace(cell.operation, in_place=False)
            own = found.setdefault(alike, {}).setdefault(cell.operation.in_place, {})
            own[cell.column] = cell
    for work, sides in found.items():
        name = _name(work, next(iter(sides[min(sides)].values())))
        title = line(Span(name, "strong"), f"  {how}" if (how := _how(work)) else "")
        yield _table(title, sides, _FIGURES, _figures)
        if any(cell.iterations for side in sides.values() for cell in side.values()):
            single = f"{name}: single ones; last is the rank that the others wait for"
            yield _table(plain(single), sides, _SINGLES, _singles)


def collectives(view: ResultView) -> Iterator[Block]:
    """Yields all blocks for a collective's result. Below the last table is the average bus
    bandwidth, as nccl-tests reports it."""
    result = view.first
    title = result.title.partition(", type(row)")[0]
    units = f"time ({COLLECTIVE.shown}), bandwidths ({BANDWIDTH.shown})"
    yield Prose((heading(result), plain(f"{title}: {units}")))
    lines = list(view.below())
    if result.average is not None:
        figured = sum(bandwidths(cell) is not None for cell in result.cells)
        cells = len(result.cells)
        of = f" of {figured} of {cells} cells" if figured < cells else ""
        average = f"{result.average / BANDWIDTH.scale:.2f} {BANDWIDTH.shown}"
        lines.insert(0, line("average bus bandwidth ", Span(average, "strong"), of))
    *others, last = tables_of(result)
    first, *rest = (*others, last._replace(lines=lines))
    yield from (first._replace(anchor=view.anchor), *rest)


def _name(work: Collective, cell: CellResult) -> str:
    """Returns the name of a collective's row: `float sum, 4 ranks`."""
    groups = work.groups(len(cell.transfers))
    ranks = f"{len(groups[0])} ranks"
    of = f"{len(groups)} groups of {ranks}" if len(groups) > 1 else ranks
    return f"{cell.row}, {of}"


def _how(work: Collective) -> str:
    """Returns how the collective is called: aggregated, blocking and the like; empty for a plain
    call."""
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
    """Makes a table with a line for each size and the figures of both sides: out of place and in
    place."""
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
    own = None if cell is None else bandwidths(cell)
    if own is None or cell is None:
        yield from (Entry("") for _ in _FIGURES)
        return
    tone = TONES[cell.verdict] if cell.verdict in ("low", "perhaps low", "high") else ""
    tone = tone if cell.status == "pass" else "bad"
    yield figure(cell.headline, COLLECTIVE.symbol, tone)
    for rate in (own.algorithm, own.bus):
        yield Entry(f"{rate / BANDWIDTH.scale:.2f}", rate, tone)
    yield Entry("") if cell.wrong is None else Entry(str(cell.wrong), cell.wrong, tone)


def _singles(cell: CellResult | None) -> Iterator[Entry]:
    """Yields percentiles of the times of single iterations, and the rank that most often comes
    last, for which the others wait. An iteration takes as long as its slowest rank."""
    each = (own.samples for own in cell.iterations) if cell else ()
    taken = sorted(map(max, zip(*each, strict=True)))
    for fraction in (0.50, 0.99):
        found = known_percentile(taken, fraction) if taken else None
        yield figure(found, COLLECTIVE.symbol)
    last = straggler_of(cell) if cell else None
    late = last and f"{last.rank} by {brief(last.wait, COLLECTIVE.symbol)}"
    yield Entry(late or "", tone="warn")

"""Collectives: for each type of numbers, with its reduction or root, a table of times and
bandwidths by size, out of place and in place; then one of single iterations, with the rank that the
others wait for."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from msgspec.structs import replace

from linkgauge.model.busbw import bandwidths
from linkgauge.model.collective import Collective
from linkgauge.model.result import CellResult, Result
from linkgauge.model.stats.summary import known_percentile
from linkgauge.model.stragglers import straggler_of
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
from linkgauge.report.matrix import shown

_SIDES = ("", "in place ")
_FIGURES = ("time (µs)", "algbw", "busbw", "#wrong")
_SINGLES = ("p50 (µs)", "p99 (µs)", "last, by µs")
_LONG = 0.1
"""Seconds from which on decimals of microseconds are left out."""
_NONE = Entry("")

Side = Mapping[str, CellResult]
"""Cells by size."""
Entries = Callable[[CellResult], Iterator[Entry]]


def tables_of(result: Result) -> Iterator[Table]:
    """Those of each row that is measured out of place; the row in place stands beside it."""
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


def average_line(result: Result) -> Line | None:
    """The average bus bandwidth, as nccl-tests report it."""
    if result.average is None:
        return None
    figured = sum(bandwidths(cell) is not None for cell in result.cells)
    cells = len(result.cells)
    of = f" of {figured} of {cells} cells" if figured < cells else ""
    figure = f"{result.average / BANDWIDTH.scale:.2f} {BANDWIDTH.shown}"
    return line("average bus bandwidth ", Span(figure, "strong"), of)


def title_of(result: Result) -> str:
    """What it does, and the units of its tables."""
    title = result.title.partition(", type(row)")[0]
    return f"{title}: time ({COLLECTIVE.shown}), bandwidths ({BANDWIDTH.shown})"


def _name(work: Collective, cell: CellResult) -> str:
    """`float sum, 4 ranks`."""
    groups = work.groups(len(cell.transfers))
    ranks = f"{len(groups[0])} ranks"
    of = f"{len(groups)} groups of {ranks}" if len(groups) > 1 else ranks
    return f"{cell.row}, {of}"


def _how(work: Collective) -> str:
    """How it is called, if not plainly."""
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
    """A line for each size, with the figures of both sides."""
    places = sorted(sides)
    columns = [
        Column(head if number else f"{_SIDES[place]}{head}", True)
        for place in places
        for number, head in enumerate(heads)
    ]
    rows = [
        (
            Entry(size),
            *(
                entry
                for place in places
                for entry in (
                    entries(sides[place][size]) if size in sides[place] else [_NONE] * len(heads)
                )
            ),
        )
        for size in dict.fromkeys(size for side in sides.values() for size in side)
    ]
    return Table(title, (Column("size", True), *columns), rows)


def _figures(cell: CellResult) -> Iterator[Entry]:
    own = bandwidths(cell)
    if own is None or cell.headline is None:
        yield from (_NONE for _ in _FIGURES)
        return
    tone = TONES[cell.verdict] if cell.verdict in ("low", "high") else ""
    tone = tone if cell.status == "pass" else "bad"
    yield Entry(_micro(cell.headline), cell.headline, tone)
    for rate in (own.algorithm, own.bus):
        yield Entry(f"{rate / BANDWIDTH.scale:.2f}", rate, tone)
    yield _NONE if cell.wrong is None else Entry(str(cell.wrong), cell.wrong, tone)


def _singles(cell: CellResult) -> Iterator[Entry]:
    """Percentiles of what single iterations took, each by the rank that was there the longest, and
    the rank that comes last."""
    each = (own.seconds for own in cell.iterations)
    taken = sorted(map(max, zip(*each, strict=True)))
    for fraction in (0.50, 0.99):
        found = known_percentile(taken, fraction) if taken else None
        yield _NONE if found is None else Entry(_micro(found), found)
    last = straggler_of(cell)
    yield _NONE if last is None else Entry(f"{last.rank} by {_micro(last.wait)}", tone="warn")


def _micro(seconds: float) -> str:
    if seconds >= _LONG:
        return f"{seconds / COLLECTIVE.scale:.0f}"
    return shown(seconds, COLLECTIVE.symbol)


def blocks_of(result: Result, heading: Line, below: Sequence[Line], anchor: str) -> Iterator[Block]:
    """All that a collective's result shows."""
    average = average_line(result)
    lines = (*([average] if average else ()), *below)
    yield Prose((heading, plain(title_of(result))))
    tables = list(tables_of(result))
    for number, table in enumerate(tables):
        is_last = number + 1 == len(tables)
        yield table._replace(anchor="" if number else anchor, lines=lines if is_last else ())

"""Collectives as text: for each type of numbers, with its reduction or root, a table of times and
bandwidths by size, out of place and in place side by side; then one of single iterations, with the
rank that the others wait for."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain

from msgspec.structs import replace
from rich.console import RenderableType
from rich.text import Text

from linkgauge.model.busbw import bandwidths
from linkgauge.model.collective import Collective
from linkgauge.model.result import CellResult, Result
from linkgauge.model.stats.summary import known_percentile
from linkgauge.model.stragglers import straggler_of
from linkgauge.model.units import BANDWIDTH, COLLECTIVE

from .expectations import STYLES
from .folding import Fitting
from .matrix import ABSENT, shown
from .wrapping import Hanging

_SIZE = 9
_SIDES = ("out of place", "in place")
_FIGURES = (("time us", 10), ("algbw", 8), ("busbw", 8), ("#wrong", 7))
_SINGLES = (("p50 us", 10), ("p99 us", 10), ("last by us", 14))
_LONG = 0.1
"""Seconds from which on decimals of microseconds are left out."""
_NOTHING = ""

Side = Mapping[str, CellResult]
"""Cells by size."""
Heads = Sequence[tuple[str, int]]
Entries = Callable[[CellResult], Iterator[tuple[str, str]]]


def collective_lines(result: Result) -> Iterator[RenderableType]:
    """Two tables for each row that is measured out of place, and the average bus bandwidth."""
    blocks: dict[Collective, dict[bool, dict[str, CellResult]]] = {}
    for cell in result.cells:
        work = cell.operation
        if isinstance(work, Collective):
            alike = replace(work, in_place=False)
            blocks.setdefault(alike, {}).setdefault(work.in_place, {})[cell.column] = cell
    title = f"{_title(result)}: time ({COLLECTIVE.shown}), bandwidths ({BANDWIDTH.shown})"
    yield Hanging(Text(title), 2)
    for number, sides in enumerate(blocks.values()):
        if number:
            yield Text()
        yield from _block([sides[place] for place in sorted(sides)])
    if result.average is not None:
        yield _average(result)


def _title(result: Result) -> str:
    return result.title.partition(", type(row)")[0]


def _block(sides: Sequence[Side]) -> Iterator[RenderableType]:
    first = next(iter(sides[0].values()))
    names = [_SIDES[_is_in_place(next(iter(side.values())))] for side in sides]
    yield Text(_name(first), "bold")
    if how := _how(first):
        yield Text(how, "dim")
    yield _sides(names, sides, _FIGURES, _figures)
    if any(cell.iterations for side in sides for cell in side.values()):
        single = "single iterations; last: the rank that the others wait for, and for how long"
        yield Hanging(Text(single), 2)
        yield _sides(names, sides, _SINGLES, _singles)


def _is_in_place(cell: CellResult) -> bool:
    return isinstance(cell.operation, Collective) and cell.operation.in_place


def _name(cell: CellResult) -> str:
    """`float sum, 4 ranks`."""
    if not isinstance(cell.operation, Collective):
        return cell.row
    groups = cell.operation.groups(len(cell.transfers))
    ranks = f"{len(groups[0])} ranks"
    of = f"{len(groups)} groups of {ranks}" if len(groups) > 1 else ranks
    return f"{cell.row.removesuffix(' in place')}, {of}"


def _how(cell: CellResult) -> str:
    """How it is called, if not plainly."""
    work = cell.operation
    if not isinstance(work, Collective):
        return ""
    parts = (
        f"{work.aggregated} calls aggregated" if work.aggregated > 1 else "",
        "blocking" if work.blocking else "",
        "in a graph" if work.graphed else "",
        f"{work.registered} registration" if work.registered else "",
    )
    return ", ".join(part for part in parts if part)


def _sides(
    names: Sequence[str], sides: Sequence[Side], heads: Heads, entries: Entries
) -> RenderableType:
    """Side by side, or where that is too wide, one below the other."""
    alone = (
        _table([name], [side], heads, entries) for name, side in zip(names, sides, strict=True)
    )
    return Fitting([*_table(names, sides, heads, entries)], [*chain.from_iterable(alone)])


def _table(
    names: Sequence[str], sides: Sequence[Side], heads: Heads, entries: Entries
) -> Iterator[Text]:
    """A line for each size, with the figures of all sides."""
    width = sum(wide for _, wide in heads)
    over = "".join(f"{name:>{width}}" for name in names)
    yield Text(f"{'':>{_SIZE}}{over}", "cyan")
    columns = "".join(f"{name:>{wide}}" for name, wide in heads) * len(sides)
    yield Text(f"{'size':>{_SIZE}}{columns}", "cyan")
    for size in dict.fromkeys(size for side in sides for size in side):
        line = Text(f"{size:>{_SIZE}}", "cyan")
        for side in sides:
            found = list(entries(side[size])) if size in side else [(ABSENT, "dim")] * len(heads)
            for (text, style), (_, wide) in zip(found, heads, strict=True):
                line.append(f"{text:>{wide}}", style)
        line.rstrip()
        yield line


def _figures(cell: CellResult) -> Iterator[tuple[str, str]]:
    own = bandwidths(cell)
    if own is None or cell.headline is None:
        yield from ((ABSENT, "dim") for _ in _FIGURES)
        return
    style = STYLES[cell.verdict] if cell.status == "pass" else "bold red"
    yield _micro(cell.headline), style
    for rate in (own.algorithm, own.bus):
        yield f"{rate / BANDWIDTH.scale:.2f}", style
    yield (ABSENT, "dim") if cell.wrong is None else (str(cell.wrong), style)


def _singles(cell: CellResult) -> Iterator[tuple[str, str]]:
    """Percentiles of what single iterations took, each by the rank that was there the longest, and
    the rank that comes last."""
    each = (own.seconds for own in cell.iterations)
    taken = sorted(map(max, zip(*each, strict=True)))
    for fraction in (0.50, 0.99):
        found = known_percentile(taken, fraction) if taken else None
        yield (ABSENT, "dim") if found is None else (_micro(found), "")
    last = straggler_of(cell)
    if last is None:
        yield _NOTHING, ""
    else:
        yield f"{last.rank} by {_micro(last.wait)}", "yellow"


def _micro(seconds: float) -> str:
    if seconds >= _LONG:
        return f"{seconds / COLLECTIVE.scale:.0f}"
    return shown(seconds, COLLECTIVE.symbol)


def _average(result: Result) -> Text:
    figured = sum(bandwidths(cell) is not None for cell in result.cells)
    cells = len(result.cells)
    of = f" of {figured} of {cells} cells" if figured < cells else ""
    figure = f"{(result.average or 0.0) / BANDWIDTH.scale:.2f} {BANDWIDTH.shown}"
    return Text.assemble("average bus bandwidth ", (figure, "bold"), of)

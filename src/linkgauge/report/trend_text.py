"""How a benchmark's cells went over the runs of a machine, where they changed, and what changed in
the machine then."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec
from rich.text import Text

from linkgauge.judge.trends import Change, Trend
from linkgauge.model.figure import SeriesId
from linkgauge.model.history import DESCRIPTION, PastRun, Series
from linkgauge.model.units import count_of, format_size, unit_of

from .csv_text import csv_text
from .fact_lines import moved
from .figures import course, digits, signed
from .files import json_document
from .run_text import simulated

MOST_BARS = 40
MOST_CELLS = 16
COLUMNS = (
    "host", "accelerators", "simulated", "benchmark", "backend", "size", "row", "column",
    "transfers", "run", "label", "started", "figure", "low", "high", "unit", "change",
)  # fmt: skip


class Trends(msgspec.Struct, frozen=True):
    """The trends to show; with `whole`, every cell of them."""

    found: tuple[Trend, ...]
    whole: bool = False


def trend_lines(trends: Trends) -> Iterator[Text]:
    """Each machine by itself."""
    for number, trend in enumerate(trends.found):
        if number:
            yield Text()
        yield _title(trend)
        yield from _table(trend, whole=trends.whole)
        yield from _changes(trend)


def _title(trend: Trend) -> Text:
    runs = trend.runs
    title = Text.assemble((f"{trend.host}, {trend.accelerators}", "bold"))
    for name, value in trend.settings.items():
        title.append(f", {name} {value}" if name != DESCRIPTION else "")
    count = "1 run" if len(runs) == 1 else f"{len(runs)} runs"
    title.append(f": {count} from {_day(runs[0])} to {_day(runs[-1])}")
    return title.append("  ").append(simulated()) if trend.simulated else title


def _day(run: PastRun) -> str:
    return run.started[:10]


def _moment(run: PastRun) -> str:
    return run.started[:16].replace("T", " ")


def _table(trend: Trend, *, whole: bool) -> Iterator[Text]:
    """A row for each cell: those that changed the most come first if not all are shown."""
    series = trend.series
    ratios = {cell.cell: cell.ratio for change in trend.changes for cell in change.cells}
    rows = sorted(series, key=lambda one: -abs(ratios.get(one.cell, 1.0) - 1))
    if whole or len(series) <= MOST_CELLS:
        rows = list(series)
    shown = rows if whole else rows[:MOST_CELLS]
    names = [_name(one.cell, series) for one in shown]
    room = max(4, *(len(name) for name in names))
    unit = unit_of(shown[0].unit)
    head = f"{unit.shown:<{room + 2}}{'first':>9}{'latest':>9}  all runs"
    yield Text(f"  {head}", "cyan")
    for name, one in zip(names, shown, strict=True):
        first, latest = (digits(one.points[at].figure / unit.scale) for at in (0, -1))
        bars = course([point.figure for point in one.points], MOST_BARS)
        yield Text(f"  {name:<{room + 2}}{first:>9}{latest:>9}  {bars}")
    if len(shown) < len(series):
        yield Text(f"  and {count_of(len(series) - len(shown))} more: --all", "dim")


def _name(cell: SeriesId, series: Sequence[Series]) -> str:
    """Its place, with what else tells it apart from the others."""
    name = str(cell.place)
    if len({one.size for one in series}) > 1:
        name += f" {format_size(cell.size)}"
    if len({one.backend for one in series}) > 1:
        name += f" {cell.backend}"
    same = [one.cell for one in series if _place(one.cell) == _place(cell)]
    if len({one.transfers for one in same}) > 1:
        name += f" {cell.transfers}"
    return name


def _place(cell: SeriesId) -> tuple[object, ...]:
    return (*cell.sheet, cell.row, cell.column)


def _changes(trend: Trend) -> Iterator[Text]:
    if not trend.changes:
        if trend.few == len(trend.series):
            yield Text("no change can be found in fewer than 6 runs", "dim")
        else:
            yield Text("no change is proven")
        return
    runs = {run.number: run for run in trend.runs}
    for change in trend.changes:
        yield _summary(change, trend)
        since, until = runs[change.since], runs[change.until]
        yield Text(f"  with run {since.id} ({_moment(since)}), after {until.id} ({_moment(until)})")
        if not change.facts:
            yield Text("  nothing that is known of the machine changed then", "dim")
        room = max((len(fact.name) for fact in change.facts), default=0)
        for fact in change.facts:
            yield Text.assemble((f"  {fact.name:<{room}}  ", "cyan"), moved(fact))


def _summary(change: Change, trend: Trend) -> Text:
    """`-5.0% (-5.6% to -4.4%): 55 of 56 cells`."""
    style = "bold red" if change.direction == "worse" else "bold green"
    ratios = sorted(cell.ratio for cell in change.cells)
    line = Text(f"{change.direction}: {signed(change.ratio)}", style)
    if len(ratios) > 1:
        line.append(f" ({signed(ratios[0])} to {signed(ratios[-1])})", "default")
        return line.append(f" in {len(ratios)} of {len(trend.series)} cells", "default")
    only = change.cells[0]
    unit = unit_of(next(o.unit for o in trend.series if o.cell == only.cell))
    before, after = (digits(value / unit.scale) for value in (only.before, only.after))
    name = _name(only.cell, trend.series)
    return line.append(f" in {name}: {before} → {after} {unit.shown}", "default")


class TrendDocument(msgspec.Struct, frozen=True, tag_field="schema", tag="linkgauge.trend/1"):
    """How figures went over the runs of a history.

    schema: The kind of document, and its version.
    trends: The machines, each under each of its setups.
    """

    trends: tuple[Trend, ...]


def trend_document(trends: Trends) -> str:
    """One JSON document of all, with every point."""
    return json_document(TrendDocument(trends.found))


def trend_csv(trends: Trends) -> str:
    """A line for each run and cell; `change` is better or worse where a new level begins."""
    return csv_text((COLUMNS, *(row for trend in trends.found for row in _csv_rows(trend))))


def _csv_rows(trend: Trend) -> Iterator[tuple[object, ...]]:
    runs = {run.number: run for run in trend.runs}
    changed = {
        (cell.cell, change.since): change.direction
        for change in trend.changes
        for cell in change.cells
    }
    for one in trend.series:
        for point in one.points:
            run = runs[point.run]
            yield (
                trend.host, trend.accelerators, trend.simulated, *_place(one.cell),
                one.transfers, run.id, run.label, run.started, point.figure, point.low,
                point.high, one.unit, changed.get((one.cell, point.run), ""),
            )  # fmt: skip

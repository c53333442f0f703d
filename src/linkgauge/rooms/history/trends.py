"""Shows trends of cells: when figures changed, and what changed in the machine at that time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

import msgspec

from linkgauge.judge.compare.trends import SharedChange, Trend
from linkgauge.model.documents.history import DESCRIPTION, PastRun, Series, SeriesId
from linkgauge.model.units import count_of, format_size, unit_of
from linkgauge.report.blocks import (
    Block,
    Column,
    Entry,
    Line,
    Problem,
    Prose,
    Span,
    Table,
    Tone,
    line,
    plain,
)
from linkgauge.report.csv_text import csv_text
from linkgauge.report.results import mark
from linkgauge.report.words.figures import TONES, course, digits, moved, signed

MOST_BARS = 40
MOST_CELLS = 16
COLUMNS = (
    "host", "accelerators", "simulated", "benchmark", "backend", "size", "row", "column",
    "transfers", "run", "label", "started", "figure", "low", "high", "unit", "change",
)  # fmt: skip


class TrendDocument(msgspec.Struct, frozen=True, tag_field="schema", tag="linkgauge.trend/1"):
    """The trends of figures over the runs of a history.

    schema: The kind of document, and its version (a tag in JSON).
    trends: One trend for each benchmark, machine and settings."""

    trends: tuple[Trend, ...]


def blocks(trends: TrendDocument, most: int | None = MOST_CELLS) -> Iterator[Block]:
    for trend in trends.trends:
        yield _cells(trend, most)
        yield from (_change(change, trend) for change in trend.changes)
        if not trend.changes:
            few = trend.few == len(trend.series)
            why = "can be found in fewer than 6 runs" if few else "is proven"
            yield Prose([plain(f"no change {why}", "dim")])


def all_blocks(trends: TrendDocument) -> Iterator[Block]:
    return blocks(trends, None)


def _caption(trend: Trend) -> Line:
    runs = trend.runs
    settings = [f"{k} {v}" for k, v in trend.settings.items() if k != DESCRIPTION]
    days = f"{runs[0].started[:10]} to {runs[-1].started[:10]}"
    return line(
        Span(", ".join((f"{trend.host}, {trend.accelerators}", *settings)), "strong"),
        f": {count_of(len(runs), 'run')} from {days}",
        mark(trend.simulated),
    )


def _cells(trend: Trend, most: int | None) -> Table:
    series = list(trend.series)
    if most is not None and len(series) > most:
        ratios = {cell.cell: cell.ratio for change in trend.changes for cell in change.cells}
        series.sort(key=lambda one: -abs(ratios.get(one.cell, 1.0) - 1))
    heads = (
        Column("cell"), Column("first", True), Column("latest", True), Column("unit"),
        Column("all runs"),
    )  # fmt: skip
    rows = [
        (
            Entry(_name(one.cell, trend.series), tone="name"),
            *(_figure(one.points[at].figure, one.unit) for at in (0, -1)),
            Entry(unit_of(one.unit).shown),
            Entry(course([point.figure for point in one.points], MOST_BARS)),
        )
        for one in series
    ]
    return Table(_caption(trend), heads, rows, few=most, rest="--all shows them")


def _figure(value: float, unit: str) -> Entry:
    return Entry(digits(value / unit_of(unit).scale), value)


def _name(cell: SeriesId, series: Sequence[Series]) -> str:
    name = str(cell.place)
    if len({one.size for one in series}) > 1:
        name += f" {format_size(cell.size)}"
    if len({one.backend for one in series}) > 1:
        name += f" {cell.backend}"
    same = (one for one in series if (one.table, one.place) == (cell.table, cell.place))
    if len({one.transfers for one in same}) > 1:
        name += f" {cell.transfers}"
    return name


def _change(change: SharedChange, trend: Trend) -> Problem:
    ratios = sorted(cell.ratio for cell in change.cells)
    found = f"{signed(ratios[0])} to {signed(ratios[-1])}"
    where = f" ({found}) in {len(ratios)} of {count_of(len(trend.series))}"
    if len(ratios) == 1:
        only = change.cells[0]
        unit = next(one.unit for one in trend.series if one.cell == only.cell)
        before, after = (_figure(value, unit).text for value in (only.before, only.after))
        name = _name(only.cell, trend.series)
        where = f" in {name}: {before} → {after} {unit_of(unit).shown}"
    named = {run.number: f"{run.id} ({run.started[:16].replace('T', ' ')})" for run in trend.runs}
    moment = f"run {named[change.since]}, after {named[change.until]}"
    facts = [(fact.name, plain(moved(fact))) for fact in change.facts]
    unknown = ("cause", plain("nothing that is known of the machine changed then", "dim"))
    return Problem(
        change.direction,
        TONES[change.direction],
        "",
        plain(f" {signed(change.ratio)}{where}"),
        [("since", plain(moment)), *(facts or [unknown])],
    )


def trend_csv(trends: TrendDocument) -> str:
    return csv_text((COLUMNS, *(row for trend in trends.trends for row in _csv_rows(trend))))


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
                trend.host, trend.accelerators, trend.simulated, *one.table, *one.place,
                one.transfers, run.id, run.label, run.started, point.figure, point.low,
                point.high, one.unit, changed.get((one.cell, point.run), ""),
            )  # fmt: skip


# The runs of a history: a row for each, the oldest first.


SCHEMA = "linkgauge.history/1"
_HEADS = tuple(map(Column, ("started (UTC)", "host", "accelerators", "label", "profile", "run")))
_TONES: dict[str, Tone] = {"pass": "", "skip": "dim"}


class HistoryDocument(msgspec.Struct, frozen=True, tag_field="schema", tag=SCHEMA):
    """The runs of a history.

    schema: The kind of document, and its version (a tag in JSON).
    runs: The runs, the oldest first."""

    runs: tuple[PastRun, ...]


def history_blocks(history: HistoryDocument) -> Iterator[Block]:
    if history.runs:
        yield Table((), _HEADS, list(map(_row, history.runs)))
    else:
        yield Prose([plain("no such run is in the history")])


def _row(run: PastRun) -> tuple[Entry, ...]:
    tone = "warn" if run.low or run.lost or run.finished is None else _TONES.get(run.status, "bad")
    kept = f"; {_near(run.path)}" if run.path else ""
    return (
        Entry(run.started[:16].replace("T", " "), tone="name"),
        Entry(f"{run.host} SIMULATED" if run.simulated else run.host),
        Entry(run.accelerators),
        Entry(run.label),
        Entry(run.profile),
        Entry(f"{_history_cells(run)}{kept}", tone=tone),
    )


def _near(path: str) -> str:
    with suppress(OSError, ValueError):
        return str(Path(path).relative_to(Path.cwd()))
    return path


def _history_cells(run: PastRun) -> str:
    passed = f"{run.passed} of {count_of(run.cells)} passed"
    if run.cells == 0 or (run.status == "skip" and run.passed == 0):
        passed = f"none of {count_of(run.cells)} measured" if run.cells else "nothing measured"
    parts = (
        passed,
        f"{run.low} low" if run.low else "",
        "" if run.status in _TONES else run.status,
        "" if run.finished else "interrupted",
        "under a profiler" if run.profiled else "",
        f"{run.lost} worse than before" if run.lost else "",
        "accepted" if run.accepted else "",
    )
    return ", ".join(filter(None, parts))


def history_csv(history: HistoryDocument) -> str:
    names = PastRun.__struct_fields__
    fields = ([getattr(run, name) for name in names] for run in history.runs)
    rows = ([" ".join(one) if isinstance(one, tuple) else one for one in row] for row in fields)
    return csv_text((names, *rows))

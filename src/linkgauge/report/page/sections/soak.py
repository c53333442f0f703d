"""A run that repeated its benchmarks for a time: cells and devices over that time, and the worst of
it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from functools import partial

from linkgauge.judge.drift import drifts
from linkgauge.model.durations import clock, format_duration
from linkgauge.model.soak import CellCourse, Moment, Soak
from linkgauge.model.units import approximate_size, unit_of
from linkgauge.report import charts
from linkgauge.report.figures import signed
from linkgauge.report.matrix import brief
from linkgauge.report.page.blocks import (
    Block,
    Column,
    Entry,
    Figure,
    Prose,
    Table,
    Tile,
    Tiles,
    line_of,
)
from linkgauge.report.page.results import label, pivot
from linkgauge.report.soak_text import headline

from . import OneRun, Section

MOST_ROWS = 200
MOST_CURVES = 8
X = "minutes"


def _blocks(one: OneRun) -> Iterator[Block]:
    if (soak := one.run.soak) is None:
        return
    yield Tiles(list(_tiles(soak)))
    yield Prose([line_of(headline(soak))])
    yield from _over_time(soak)
    yield from _devices(soak)
    yield _table(soak)
    yield from _moments(soak)


def _tiles(soak: Soak) -> Iterator[Tile]:
    struck = len(soak.struck) + soak.more
    yield Tile(format_duration(soak.lasted), f"of {format_duration(soak.asked.seconds)}")
    yield Tile(f"{soak.rounds:,}", "whole rounds")
    yield Tile(approximate_size(soak.compared), "compared byte by byte")
    yield Tile(f"{struck:,}", "visits struck", "bad" if struck else "good")
    hottest = [device.hottest for device in soak.devices if device.hottest is not None]
    if hottest:
        too_hot = soak.stopped == "temperature"
        yield Tile(f"{max(hottest):g} °C", "hottest device", "bad" if too_hot else "")


def _over_time(soak: Soak) -> Iterator[Block]:
    """The mean of each benchmark's cells, in percent of their medians."""
    found: defaultdict[str, list[CellCourse]] = defaultdict(list)
    for cell in soak.cells:
        if cell.median:
            found[label(cell.cell.benchmark)].append(cell)
    worst = sorted(found, key=lambda name: min(_shares(found[name]), default=1.0))[:MOST_CURVES]
    rows: list[dict[str, object]] = [
        {"x": _minutes(soak, at), "y": round(100 * share, 2), "series": name}
        for name in found
        if name in worst
        for at, share in _means(found[name])
    ]
    if rows:
        title = "Figures over the time, in percent of their median"
        what = "percent of the median"
        draw = partial(charts.over_time, y=what, x=X)
        yield Figure(title, title, draw, rows, pivot(what, X, rows[:MOST_ROWS]))


def _means(cells: Sequence[CellCourse]) -> Iterator[tuple[int, float]]:
    for at, means in enumerate(zip(*(cell.means for cell in cells), strict=True)):
        shares = [
            mean / cell.median
            for mean, cell in zip(means, cells, strict=True)
            if mean is not None and cell.median
        ]
        if shares:
            yield at, sum(shares) / len(shares)


def _shares(cells: Sequence[CellCourse]) -> list[float]:
    return [share for _, share in _means(cells)]


def _minutes(soak: Soak, at: int) -> float:
    return round((at + 0.5) * soak.slice / 60, 3)


def _devices(soak: Soak) -> Iterator[Block]:
    for what, values in (
        ("temperature (°C)", {one.memory: one.temperature for one in soak.devices}),
        ("power (W)", {one.memory: one.power for one in soak.devices}),
    ):
        rows: list[dict[str, object]] = [
            {"x": _minutes(soak, at), "y": round(value, 1), "series": label(memory)}
            for memory, own in list(values.items())[:MOST_CURVES]
            for at, value in enumerate(own)
            if value is not None
        ]
        if rows:
            title = f"{what[0].upper()}{what[1:]} over the time"
            draw = partial(charts.over_time, y=what, x=X)
            yield Figure(title, title, draw, rows, pivot(what, X, rows[:MOST_ROWS]))
    throttled = [
        (Entry(label(device.memory)), Entry(label(why.reason), tone="warn"),
         Entry(f"{why.visits:,} of {device.visits:,}", why.visits), *_when(why.first))
        for device in soak.devices
        for why in device.throttled
    ]  # fmt: skip
    if throttled:
        heads = (Column("device"), Column("by"), Column("visits", True), *_WHEN)
        yield Table("Throttled", heads, throttled)


_WHEN = (Column("first at", True), Column("round", True), Column("time of day"))
_HEADS = (
    Column("cell"), Column("visits", True), Column("median", True), Column("unit"),
    Column("slow p95", True), Column("slow p99", True), Column("slow p99.9", True),
    Column("worst", True), Column("drift", True), Column("compared", True), Column("struck", True),
)  # fmt: skip


def _when(moment: Moment) -> tuple[Entry, Entry, Entry]:
    return (
        Entry(clock(moment.at), moment.at),
        Entry(str(moment.round), moment.round),
        Entry(moment.time),
    )


def _table(soak: Soak) -> Table:
    changes = {drift.cell.cell: drift for drift in drifts(soak)}
    rows = []
    for cell in soak.cells[:MOST_ROWS]:
        drift = changes.get(cell.cell)
        figures = (cell.slow_p95, cell.slow_p99, cell.slow_p999, cell.worst)
        rows.append((
            Entry(label(str(cell.cell))), Entry(f"{cell.visits:,}", cell.visits),
            _figure(cell.median, cell.unit), Entry(unit_of(cell.unit).shown),
            *(_figure(figure, cell.unit) for figure in figures),
            Entry("") if drift is None else Entry(
                signed(drift.ratio), drift.ratio, "bad" if drift.direction == "worse" else "good"
            ),
            Entry(f"{cell.checked:,}", cell.checked),
            Entry(f"{cell.struck:,}", cell.struck, "bad" if cell.struck else ""),
        ))  # fmt: skip
    left = len(soak.cells) - MOST_ROWS
    caption = "All rounds" if left <= 0 else f"All rounds (run.json has {left} more cells)"
    return Table(caption, _HEADS, rows, sortable=True)


def _figure(value: float | None, unit: str) -> Entry:
    return Entry("") if value is None else Entry(brief(value, unit), value)


def _moments(soak: Soak) -> Iterator[Block]:
    if soak.struck:
        rows = [
            (*_when(one.moment), Entry(label(str(one.cell))), Entry(one.status, tone="bad"),
             Entry(label(one.reason or "", 200)))
            for one in soak.struck
        ]  # fmt: skip
        heads = (Column("at"), *_WHEN[1:], Column("cell"), Column("how"), Column("reason"))
        yield Table("Struck", heads, rows)
    if soak.worst:
        rows = [
            (*_when(one.moment), Entry(label(str(one.cell))),
             Entry(f"{brief(one.figure, one.unit)} {unit_of(one.unit).shown}", one.figure),
             Entry(f"{one.share:.0%}", one.share))
            for one in soak.worst
        ]  # fmt: skip
        heads = (
            Column("at"), *_WHEN[1:], Column("cell"), Column("figure", True),
            Column("of its median", True),
        )  # fmt: skip
        yield Table("Slowest moments", heads, rows, sortable=True)


SECTION = Section("soak", "Over the time", 15, of_run=_blocks)

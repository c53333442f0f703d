"""Shows a run that repeated its benchmarks: cells and devices over time, and the worst events."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from linkgauge.model.documents.soak import CellCourse, DeviceCourse, Moment, SlowMoment, Soak
from linkgauge.model.grouped import grouped
from linkgauge.model.stats.change_points import change_points, holding
from linkgauge.model.stats.changes import ChangedTo, changed_to
from linkgauge.model.units import (
    approximate_size,
    clock,
    count_of,
    format_duration,
    format_with_unit,
    unit_of,
)
from linkgauge.report.blocks import (
    Block,
    Column,
    Entry,
    Line,
    Prose,
    Span,
    Table,
    Tile,
    Tiles,
    line,
    plain,
)
from linkgauge.report.curves import over_time
from linkgauge.report.results import figure, label, without_empty
from linkgauge.report.words.figures import TONES, course, signed
from linkgauge.report.words.run_notes import day, when

LEAST = 0.01


class LevelShift(NamedTuple):
    """A lasting change of a cell. `ratio` is the last level of the figures divided by the first.
    `at` is the time of the first change, in seconds since the start of the run."""

    cell: CellCourse
    ratio: float
    at: float
    direction: ChangedTo


def drifts(soak: Soak) -> tuple[LevelShift, ...]:
    """Returns proven changes of at least the share LEAST: losses, then gains, the largest first."""
    found = []
    for cell in soak.cells:
        places = [at for at, mean in enumerate(cell.means) if mean is not None]
        changes = change_points([mean for mean in cell.means if mean is not None])
        if changes:
            ratio = changes[-1].after / changes[0].before
            at = soak.slice * places[changes[0].at]
            drift = LevelShift(cell, ratio, at, changed_to(ratio, cell.better))
            found.append((min(change.p for change in changes), drift))
    most = holding([p for p, _ in found], len(soak.cells))
    proven = [one for p, one in found if p <= most and abs(one.ratio - 1) >= LEAST]
    return tuple(sorted(proven, key=lambda one: (one.direction == "better", -abs(one.ratio - 1))))


MOST_ROWS = 200
FEW_ROWS, FEW_MOMENTS, FEW_FAILED = 12, 3, 5
MOST_CURVES = 8
MOST_BARS = 24
REST = "run.json has the others"
X = "minutes"


def blocks(soak: Soak) -> Iterator[Block]:
    found = drifts(soak)
    yield Tiles(tuple(_tiles(soak)), "soak")
    if soak.reason is not None:
        yield Prose([plain(f"stopped: {soak.reason}", "bad")])
    yield from _over_time(soak)
    if any(cell.median is not None for cell in soak.cells):
        yield without_empty(_cells(soak, found))
    lines = [*_drift_lines(found), *(known for d in soak.devices if (known := _device_line(d)))]
    if lines:
        yield Prose(lines)
    if soak.failed:
        yield _failed(soak)
    if soak.worst:
        yield _slowest(soak.worst)


def _tiles(soak: Soak) -> Iterator[Tile]:
    yield Tile(format_duration(soak.lasted), f"of {format_duration(soak.asked.seconds)}")
    short = soak.stopped == "time" and not soak.rounds
    what = "whole round" if soak.rounds == 1 else "whole rounds"
    if short:
        yield Tile("0", "whole rounds: too short a time", "warn")
    else:
        yield Tile(f"{soak.rounds:,}", what)
    yield Tile(f"{soak.repetitions:,}", "repetitions")
    if soak.checked:
        yield Tile(f"{soak.checked:,}", f"of them checked ({approximate_size(soak.compared)})")
    else:
        yield Tile("no", "byte compared", "warn")
    failed = len(soak.failed) + soak.more
    yield Tile(f"{failed:,}", "failed", "bad" if failed else "good")
    hottest = [device.hottest for device in soak.devices if device.hottest is not None]
    if hottest:
        too_hot = soak.stopped == "temperature"
        yield Tile(f"{max(hottest):g} °C", "hottest device", "bad" if too_hot else "")


def _over_time(soak: Soak) -> Iterator[Block]:
    found = grouped((label(cell.cell.benchmark), cell) for cell in soak.cells if cell.median)
    shares = {name: list(_shares(soak, cells)) for name, cells in found.items()}
    worst = sorted(shares, key=lambda name: min((s for _, s in shares[name]), default=1.0))
    title = "Figures over time, in percent of their median"
    own = {name: shares[name] for name in shares if name in worst[:MOST_CURVES]}
    percents = {name: [(at, 100 * share) for at, share in curve] for name, curve in own.items()}
    yield from over_time(title, "percent of the median", percents, X)
    for what, values in (
        ("temperature (°C)", {one.memory: one.temperature for one in soak.devices}),
        ("power (W)", {one.memory: one.power for one in soak.devices}),
    ):
        curves = {
            label(memory): [
                (_minutes(soak, at), value) for at, value in enumerate(own) if value is not None
            ]
            for memory, own in list(values.items())[:MOST_CURVES]
        }
        yield from over_time(f"{what[0].upper()}{what[1:]} over time", what, curves, X)


def _shares(soak: Soak, cells: Sequence[CellCourse]) -> Iterator[tuple[float, float]]:
    for number, means in enumerate(zip(*(cell.means for cell in cells), strict=True)):
        shares = [
            mean / cell.median
            for mean, cell in zip(means, cells, strict=True)
            if mean is not None and cell.median
        ]
        if shares:
            yield _minutes(soak, number), sum(shares) / len(shares)


def _minutes(soak: Soak, number: int) -> float:
    return (number + 0.5) * soak.slice / 60


_HEADS = (
    Column("cell"), Column("median", True), Column("unit"), Column("slowest 5%", True, 4),
    Column("slowest 1%", True, 2), Column("slowest 0.1%", True, 6), Column("worst", True, 1),
    Column("drift", True), Column("over time", rank=3), Column("repetitions", True, 7),
    Column("checked", True, 8), Column("failed", True, 5),
)  # fmt: skip


def _cells(soak: Soak, found: Sequence[LevelShift]) -> Table:
    changes = {drift.cell.cell: drift for drift in found}
    cells = [one for one in soak.cells if one.median is not None]
    if len(cells) > FEW_ROWS:
        cells.sort(key=lambda one: (one.cell not in changes, _steadiness(one)))
    rows = []
    for cell in cells[:MOST_ROWS]:
        drift = changes.get(cell.cell)
        slow = (cell.slow_p95, cell.slow_p99, cell.slow_p999, cell.worst)
        bars = course([mean for mean in cell.means if mean is not None], MOST_BARS)
        rows.append((
            Entry(label(str(cell.cell))),
            figure(cell.median, cell.unit), Entry(unit_of(cell.unit).shown),
            *(figure(one, cell.unit) for one in slow),
            Entry("") if drift is None else Entry(
                signed(drift.ratio), drift.ratio, TONES[drift.direction]
            ),
            Entry(bars),
            Entry(f"{cell.repetitions:,}", cell.repetitions),
            Entry(f"{cell.checked:,}", cell.checked),
            Entry(f"{cell.failed:,}" if cell.failed else "", cell.failed, "bad"),
        ))  # fmt: skip
    left = len(cells) - MOST_ROWS
    caption = "Cells" if left <= 0 else f"Cells (run.json has {left} more)"
    return Table(plain(caption), _HEADS, rows, sortable=True, few=FEW_ROWS, rest=REST)


def _steadiness(one: CellCourse) -> float:
    slow = one.slow_p99 or one.worst
    if not slow or not one.median:
        return 1.0
    return slow / one.median if one.better == "higher" else one.median / slow


def _drift_lines(found: Sequence[LevelShift]) -> Iterator[Line]:
    for direction in ("worse", "better"):
        same = [drift for drift in found if drift.direction == direction]
        if same:
            first = min(same, key=lambda drift: drift.at)
            ratios = sorted(drift.ratio for drift in same)
            ends = dict.fromkeys(signed(ratio) for ratio in (ratios[0], ratios[-1]))
            yield line(
                Span("drift", TONES[direction]),
                f"  {direction} by {' to '.join(ends)} in {count_of(len(same))}, "
                f"the first from {clock(first.at)} on: {first.cell.cell}",
            )


def _device_line(device: DeviceCourse) -> Line | None:
    parts = []
    known = [one for one in device.temperature if one is not None]
    if known:
        parts.append(f"{known[0]:g} °C at first, {max(known):g} °C at most")
    power = [one for one in device.power if one is not None]
    if power:
        parts.append(f"{max(power):.0f} W at most")
    for one in device.throttled:
        share = f"{one.repetitions:,} of {device.repetitions:,} repetitions"
        parts.append(f"throttled by {one.reason} in {share}, first {when(one.first)}")
    if device.replays:
        parts.append(f"{device.replays} PCIe replays")
    return line(Span(device.memory, "name"), f"  {'; '.join(parts)}") if parts else None


_WHEN = (Column("at", True), Column("round", True, 1), Column("time of day (UTC)", rank=2))


def _moment(moment: Moment) -> tuple[Entry, Entry, Entry]:
    return (
        Entry(clock(moment.at), moment.at),
        Entry(str(moment.round), moment.round),
        Entry(day(moment)),
    )


def _failed(soak: Soak) -> Table:
    rows = [
        (Entry(label(str(one.cell))), *_moment(one.moment), Entry(one.status.upper(), tone="bad"),
         Entry(label(one.reason or "", 200)))
        for one in soak.failed
    ]  # fmt: skip
    heads = (Column("cell"), *_WHEN, Column("how"), Column("reason"))
    more = f" (and {soak.more:,} more)" if soak.more else ""
    return Table(plain(f"Failed{more}"), heads, rows, few=FEW_FAILED, rest=REST)


def _slowest(worst: Sequence[SlowMoment]) -> Table:
    rows = [
        (Entry(label(str(one.cell))), *_moment(one.moment),
         Entry(format_with_unit(one.figure, one.unit), one.figure),
         Entry(f"{one.share:.0%}", one.share))
        for one in worst
    ]  # fmt: skip
    heads = (Column("cell"), *_WHEN, Column("figure", True), Column("of its median", True))
    caption = plain("Slowest moments")
    return Table(caption, heads, rows, sortable=True, few=FEW_MOMENTS, rest=REST)

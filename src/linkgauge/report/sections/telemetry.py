"""The state of accelerators while they were measured: links, clocks, temperature, power."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial

from linkgauge.model.inventory import Reading
from linkgauge.model.result import Run
from linkgauge.report import charts
from linkgauge.report.blocks import Block, Column, Entry, Figure, Prose, Table, plain
from linkgauge.report.results import label, pivot, without_empty
from linkgauge.report.sentences import first_of

from . import OneRun, Section

MOST_POINTS = 200
"""Of one device."""
MOST_DEVICES = 8
MOST_ROWS = 128
"""Devices that have a row each; of more, those that stand out."""
_HEADS = (
    Column("device"), Column("readings", True), Column("PCIe GT/s", True), Column("lanes", True),
    Column("clock MHz, least", True), Column("most", True), Column("°C, most", True),
    Column("W, most", True), Column("replays", True), Column("throttled by"),
)  # fmt: skip

Timed = tuple[float, Reading]
"""Seconds of sampling before it, and what was read."""


def _blocks(one: OneRun) -> Iterator[Block]:
    devices = _readings(one.run)
    if not devices:
        return
    shown = {d: own for d, own in devices.items() if len(devices) <= MOST_ROWS or _stands_out(own)}
    if rest := len(devices) - len(shown):
        text = f"{rest:,} of {len(devices):,} devices were not throttled and sent no packets again"
        yield Prose([plain(text, "dim")])
    rows = [_row(device, [reading for _, reading in own]) for device, own in shown.items()]
    if rows:
        caption = "While they were measured"
        yield without_empty(Table(plain(caption), _HEADS, rows[:MOST_ROWS], sortable=True))
    few = dict(list(devices.items())[:MOST_DEVICES])
    yield from _figure("clock of the cores (MHz)", few, _clock)
    yield from _figure("speed of the PCIe link (GT/s)", few, lambda one: one.link_speed)
    yield from _figure("temperature (°C)", few, lambda one: one.temperature_max)
    yield from _figure("power (W)", few, lambda one: one.power_max)


def _stands_out(own: Sequence[Timed]) -> bool:
    return any(reading.throttled or reading.pcie_replays for _, reading in own)


def _clock(reading: Reading) -> float | None:
    return None if reading.clock_min is None else reading.clock_min / 1e6


def _readings(run: Run) -> dict[str, list[Timed]]:
    """Of each device, in the order of the run's cells."""
    devices: dict[str, list[Timed]] = {}
    seconds = 0.0
    for result in run.results:
        for cell in result.cells:
            for reading in cell.readings:
                if reading.count:
                    devices.setdefault(label(reading.memory), []).append((seconds, reading))
            seconds += cell.seconds or 0.0
    return devices


def _row(device: str, own: Sequence[Reading]) -> tuple[Entry, ...]:
    def ends(*values: float | None, scale: float = 1.0, most: bool = True) -> Entry:
        known = [value / scale for value in values if value is not None]
        if not known:
            return Entry("")
        end = max(known) if most else min(known)
        return Entry(f"{end:g}", end)

    replays = sum(one.pcie_replays or 0 for one in own)
    throttled = list(dict.fromkeys(why for one in own for why in one.throttled))
    return (
        Entry(device),
        Entry(f"{sum(one.count for one in own):,}"),
        ends(*(one.link_speed for one in own), most=False),
        ends(*(one.link_width for one in own), most=False),
        ends(*(one.clock_min for one in own), scale=1e6, most=False),
        ends(*(one.clock_max for one in own), scale=1e6),
        ends(*(one.temperature_max for one in own)),
        ends(*(one.power_max for one in own)),
        Entry(str(replays), replays, "warn" if replays else ""),
        Entry(label(first_of(throttled, ", ")), tone="warn" if throttled else ""),
    )


def _figure(
    what: str, devices: dict[str, list[Timed]], read: Callable[[Reading], float | None]
) -> Iterator[Block]:
    """A chart of what changed; a line of what did not."""
    curves = {}
    for device, own in devices.items():
        known = [(at, value) for at, one in own if (value := read(one)) is not None]
        if known:
            curves[device] = known
    values = {value for known in curves.values() for _, value in known}
    if not values:
        return
    if len(values) == 1:
        always = f"{what[0].upper()}{what[1:]}: {values.pop():g} all the time"
        yield Prose([plain(always)])
        return
    rows: list[dict[str, object]] = [
        {"x": round(at, 3), "y": round(value, 3), "series": device}
        for device, known in _alike(curves).items()
        for at, value in _steps(known)
    ]
    title = f"{what[0].upper()}{what[1:]} over the run"
    table = pivot(what, "seconds", rows[:MOST_POINTS])
    yield Figure(title, title, partial(charts.over_time, y=what), rows, table)


def _alike(curves: dict[str, list[tuple[float, float]]]) -> dict[str, list[tuple[float, float]]]:
    """Devices that never changed and are alike, as one."""
    steady: dict[float, list[str]] = {}
    for device, known in curves.items():
        if len({value for _, value in known}) == 1:
            steady.setdefault(known[0][1], []).append(device)
    found = {d: known for d, known in curves.items() if len({value for _, value in known}) > 1}
    for names in steady.values():
        longest = max((curves[name] for name in names), key=lambda known: known[-1][0])
        found[label(", ".join(names))] = longest
    return found


def _steps(known: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """The points where the value changes, and the last; of too many, some of them."""
    kept = [one for at, one in enumerate(known) if at == 0 or known[at - 1][1] != one[1]]
    kept = kept[:: max(1, -(-len(kept) // MOST_POINTS))]
    return [*kept, known[-1]] if known else []


SECTION = Section("state", "Links and clocks over time", 80, of_run=_blocks)

"""Shows the state of accelerators under load: links, clocks, temperature, power and throttling."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import accumulate

from linkgauge.model.documents.result import Result, Run
from linkgauge.model.grouped import grouped
from linkgauge.model.hardware.inventory import Reading
from linkgauge.model.names import range_of
from linkgauge.report.blocks import Block, Column, Entry, Line, Prose, Span, Tone, line, plain
from linkgauge.report.curves import over_time
from linkgauge.report.forms import cells_of
from linkgauge.report.results import label, table
from linkgauge.report.words.sentences import first_of

from . import OneRun, Section

MOST_POINTS = 200
MOST_DEVICES = 8
MOST_ROWS = 128
"""With more, only devices that stand out have a row."""


def _mega(clock: float | None) -> float | None:
    return None if clock is None else clock / _MHZ


Read = Callable[[Reading], float | None]
_COLUMNS: Sequence[tuple[str, Read, Callable[[Sequence[float]], float]]] = (
    ("PCIe GT/s", lambda one: one.link_speed, min),
    ("lanes", lambda one: one.link_width, min),
    ("clock MHz, least", lambda one: _mega(one.clock_min), min),
    ("most", lambda one: _mega(one.clock_max), max),
    ("°C, most", lambda one: one.temperature_max, max),
    ("W, most", lambda one: one.power_max, max),
    ("replays", lambda one: one.pcie_replays, sum),
)
_CURVES: Sequence[tuple[str, Read]] = (
    ("clock of the cores (MHz)", lambda one: _mega(one.clock_min)),
    ("speed of the PCIe link (GT/s)", lambda one: one.link_speed),
    ("temperature (°C)", lambda one: one.temperature_max),
    ("power (W)", lambda one: one.power_max),
)
Timed = tuple[float, Reading]


def _blocks(one: OneRun) -> Iterator[Block]:
    devices = _readings(one.run)
    shown = {
        device: own for device, own in devices.items()
        if len(devices) <= MOST_ROWS or any(one.throttled or one.pcie_replays for _, one in own)
    }  # fmt: skip
    if rest := len(devices) - len(shown):
        text = f"{rest:,} of {len(devices):,} devices were not throttled and sent no packets again"
        yield Prose([plain(text, "dim")])
    rows = [_row(name, Counter(reading for _, reading in own)) for name, own in shown.items()]
    if rows:
        numbers = (Column(name, True) for name in ("readings", *(name for name, *_ in _COLUMNS)))
        heads: list[str | Column] = ["device", *numbers, "throttled by"]
        found = table("While they were measured", heads, rows[:MOST_ROWS])
        yield found._replace(sortable=True)
    few = dict(list(devices.items())[:MOST_DEVICES])
    for what, read in _CURVES:
        yield from _figure(what, few, read)


def _readings(run: Run) -> dict[str, list[Timed]]:
    cells = [cell for _, cell in cells_of(run.results)]
    begins = accumulate((cell.seconds or 0.0 for cell in cells), initial=0.0)
    return grouped(
        (label(reading.memory), (begin, reading))
        for begin, cell in zip(begins, cells, strict=False)
        for reading in cell.readings
        if reading.count
    )


def _row(device: str, own: Counter[Reading]) -> Sequence[str | Entry]:
    row: list[str | Entry] = [device, f"{sum(one.count for one in own.elements()):,}"]
    for _, read, end in _COLUMNS:
        known = _known(own.elements() if end is sum else own, read)
        tone: Tone = "warn" if end is sum and any(known) else ""
        row.append(Entry(f"{end(known):g}", end(known), tone) if known else "")
    throttled = list(dict.fromkeys(why for one in own for why in one.throttled))
    return [*row, Entry(label(first_of(throttled, ", ")), tone="warn" if throttled else "")]


def _figure(what: str, devices: dict[str, list[Timed]], read: Read) -> Iterator[Block]:
    curves = grouped(
        (device, (at, value))
        for device, own in devices.items()
        for at, one in own
        if (value := read(one)) is not None
    )
    values = {value for known in curves.values() for _, value in known}
    title = f"{what[0].upper()}{what[1:]}"
    if len(values) == 1:
        yield Prose([plain(f"{title}: {values.pop():g} all the time")])
    elif values:
        steps = {device: _steps(known) for device, known in _equivalent(curves).items()}
        yield from over_time(f"{title} over the run", what, steps)


def _equivalent(
    curves: dict[str, list[tuple[float, float]]],
) -> dict[str, list[tuple[float, float]]]:
    changed = {one: known for one, known in curves.items() if len({v for _, v in known}) > 1}
    steady = grouped((known[0][1], name) for name, known in curves.items() if name not in changed)
    shared = (
        (label(", ".join(names)), max((curves[name] for name in names), key=lambda one: one[-1][0]))
        for names in steady.values()
    )
    return changed | dict(shared)


def _steps(known: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    kept = [one for at, one in enumerate(known) if at == 0 or known[at - 1][1] != one[1]]
    return [*kept[:: max(1, -(-len(kept) // MOST_POINTS))], known[-1]]


_MHZ = 1e6


def state_lines(result: Result, *, detailed: bool = True) -> Iterator[Line]:
    """Yields why matrix products were throttled; if `detailed`, also clocks, power, temperature."""
    for row in dict.fromkeys(cell.row for cell in result.cells if cell.does.product):
        cells = (cell for cell in result.cells if cell.row == row)
        readings = [reading for cell in cells for reading in cell.readings if reading.count]
        figures, throttled = ", ".join(_figures(readings)) if detailed else "", _throttled(readings)
        joint = "; " if figures and throttled else ""
        if figures or throttled:
            name, state = Span(f"{row} ", "name"), Span(figures, "dim")
            yield line(name, state, joint, Span(throttled, "warn"))


def _known(readings: Iterable[Reading], read: Read) -> list[float]:
    return [value for one in readings if (value := read(one)) is not None]


def _figures(readings: Sequence[Reading]) -> Iterator[str]:
    clocks = [*_known(readings, lambda one: one.clock_min)]
    clocks += _known(readings, lambda one: one.clock_max)
    if clocks:
        yield f"{range_of('{:.0f}'.format, [clock / _MHZ for clock in clocks])} MHz"
    if power := _known(readings, lambda one: one.power_max):
        yield f"at most {max(power):.0f} W"
    if heat := _known(readings, lambda one: one.temperature_max):
        yield f"at most {max(heat):.0f} °C"


def _throttled(readings: Sequence[Reading]) -> str:
    reasons = grouped((reason, one.memory) for one in readings for reason in one.throttled)
    devices = {reading.memory for reading in readings}
    named = [
        reason if len(set(of)) == len(devices) else f"{reason} ({', '.join(dict.fromkeys(of))})"
        for reason, of in reasons.items()
    ]
    return f"throttled: {', '.join(named)}" if named else ""


SECTION = Section("state", "Links and clocks over time", 80, of_run=_blocks)

"""A run that repeated its benchmarks for a time: how it went over that time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.text import Text

from linkgauge.judge.drift import Drift, drifts, of_cells
from linkgauge.model.durations import clock, format_duration
from linkgauge.model.result import Run
from linkgauge.model.soak import CellCourse, DeviceCourse, Moment, SlowMoment, Soak, Struck
from linkgauge.model.units import approximate_size, count_of, unit_of

from .figures import course, signed
from .matrix import brief
from .wrapping import Hanging

MOST_CELLS = 12
MOST_WORST = 3
NOTABLE = 0.9
"""Of slow moments that are nearer to the median, one is enough."""
MOST_STRUCK = 5
MOST_BARS = 24
INDENT = 4


def soak_lines(run: Run) -> Iterator[RenderableType]:
    """What was repeated and what struck it, the cells over time, the slowest moments, and what the
    devices went through."""
    if (soak := run.soak) is None:
        return
    yield Hanging(headline(soak), INDENT)
    found = drifts(soak)
    yield from _table(soak, found)
    slow = [one for one in soak.worst[:MOST_WORST] if one.share < NOTABLE]
    for one in slow or soak.worst[:1]:
        yield Hanging(Text.assemble(("slowest", "cyan"), f"  {slow_sentence(one)}"), INDENT)
    for drift in _told_drifts(found):
        yield Hanging(drift, INDENT)
    for struck in soak.struck[:MOST_STRUCK]:
        yield Hanging(struck_line(struck), INDENT)
    left = len(soak.struck) - MOST_STRUCK + soak.more
    if left > 0:
        yield Text(f"and {left} more, of which run.json has the first", "dim")
    for device in soak.devices:
        if (line := device_line(device)) is not None:
            yield Hanging(line, INDENT)
    yield Text()


def headline(soak: Soak) -> Text:
    """`soak: 10 min of 10 min, 153 rounds, …`."""
    line = Text.assemble(("soak", "bold"), f": {lasted(soak)}, ")
    is_short = soak.stopped == "time" and not soak.rounds
    line.append(_rounds(soak.rounds), "bold yellow" if is_short else "")
    line.append(" (the time was too short for what is selected)" if is_short else "", "yellow")
    line.append(f", {soak.visits:,} visits, ")
    if soak.checked:
        line.append(
            f"{soak.checked:,} with every byte compared ({approximate_size(soak.compared)})"
        )
    else:
        line.append("no byte compared", "yellow")
    struck = len(soak.struck) + soak.more
    line.append(", ").append(
        *((f"{struck} struck", "bold red") if struck else ("none struck", "green"))
    )
    if soak.reason is not None:
        line.append("; stopped: ").append(soak.reason, "bold red")
    return line


def lasted(soak: Soak) -> str:
    return f"{format_duration(soak.lasted)} of {format_duration(soak.asked.seconds)}"


def _rounds(count: int) -> str:
    return "1 whole round" if count == 1 else f"{count:,} whole rounds"


def _table(soak: Soak, found: Sequence[Drift]) -> Iterator[RenderableType]:
    """A line for each cell; of many, those that drifted most, then those whose slowest 1 % are
    furthest below their median."""
    cells = [cell for cell in soak.cells if cell.median is not None]
    if not cells:
        return
    changes = {drift.cell.cell: drift for drift in found}
    order = sorted(cells, key=lambda one: (one.cell not in changes, steadiness(one)))
    shown = cells if len(cells) <= MOST_CELLS else order[:MOST_CELLS]
    names = [str(one.cell) for one in shown]
    rows = [_figures(one, changes.get(one.cell)) for one in shown]
    yield _Rows(("cell", *names), (Text(_HEADS, "cyan"), *rows))
    if len(shown) < len(cells):
        yield Text(f"  and {count_of(len(cells) - len(shown))} more, which run.json has", "dim")


_HEADS = f"{'median':>9} {'':<6}{'slow p99':>9}{'worst':>9}{'drift':>8}  over time"


def _figures(one: CellCourse, drift: Drift | None) -> Text:
    figures = "".join(
        f"{'' if value is None else brief(value, one.unit):>9}"
        for value in (one.slow_p99, one.worst)
    )
    median = brief(one.median or 0.0, one.unit)
    change = "" if drift is None else signed(drift.ratio)
    style = "" if drift is None else _STYLES[drift.direction]
    return Text.assemble(
        f"{median:>9} {unit_of(one.unit).shown:<6}{figures}",
        (f"{change:>8}", style),
        f"  {course([mean for mean in one.means if mean is not None], MOST_BARS)}",
    )


class _Rows(NamedTuple):
    """Names with their figures beside them; below them where the console is too narrow."""

    names: Sequence[str]
    figures: Sequence[Text]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        room = max(map(len, self.names))
        is_narrow = 2 + room + max(len(one.plain) for one in self.figures) > options.max_width
        for number, (name, figures) in enumerate(zip(self.names, self.figures, strict=True)):
            style = "" if number else "cyan"
            if is_narrow:
                yield Text(f"  {name}", style, no_wrap=True, overflow="ignore")
            beside = " " * (_BELOW if is_narrow else 2)
            own = "" if is_narrow else f"{name:<{room}}"
            line = Text.assemble((beside + own, style), figures)
            line.no_wrap, line.overflow = True, "ignore"
            yield line


_BELOW = 4


_STYLES = {"worse": "bold red", "better": "green"}


def steadiness(one: CellCourse) -> float:
    """The speed of the slowest 1 % as a share of the median's."""
    slow = one.slow_p99 or one.worst
    if not slow or not one.median:
        return 1.0
    return slow / one.median if one.better == "higher" else one.median / slow


def _told_drifts(found: Sequence[Drift]) -> Iterator[Text]:
    for direction in ("worse", "better"):
        same = of_cells(found, direction)
        if same:
            first = min(same, key=lambda drift: drift.at)
            ratios = sorted(drift.ratio for drift in same)
            ends = dict.fromkeys(signed(ratio) for ratio in (ratios[0], ratios[-1]))
            yield Text.assemble(
                ("drift", _STYLES[direction]),
                f"  {direction} by {' to '.join(ends)} in {count_of(len(same))}, "
                f"the first from {clock(first.at)} on: {first.cell.cell}",
            )


def slow_sentence(one: SlowMoment) -> str:
    figure = f"{brief(one.figure, one.unit)} {unit_of(one.unit).shown}"
    return f"{figure}, {one.share:.0%} of its median  {one.cell}  {when(one.moment)}"


def when(moment: Moment) -> str:
    """`at 0:03:12, in round 12 (2026-11-24 17:03:12 UTC)`."""
    day = moment.time[:19].replace("T", " ")
    return f"at {clock(moment.at)}, in round {moment.round} ({day} UTC)"


def struck_line(struck: Struck) -> Text:
    reason = f": {struck.reason}" if struck.reason else ""
    return Text.assemble(
        (struck.status.upper(), "bold red"), f"  {struck.cell}  {when(struck.moment)}{reason}"
    )


def device_line(device: DeviceCourse) -> Text | None:
    """None where its library reported nothing of note."""
    parts = []
    known = [one for one in device.temperature if one is not None]
    if known:
        parts.append(f"{known[0]:g} °C at first, {max(known):g} °C at most")
    power = [one for one in device.power if one is not None]
    if power:
        parts.append(f"{max(power):.0f} W at most")
    for one in device.throttled:
        share = f"{one.visits:,} of {device.visits:,} visits"
        parts.append(f"throttled by {one.reason} in {share}, first {when(one.first)}")
    if device.replays:
        parts.append(f"{device.replays} PCIe replays")
    if not parts:
        return None
    return Text.assemble((device.memory, "cyan"), f"  {'; '.join(parts)}")
